package redisstreams

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// talk serves connections, until the end of the test, as a server that reports info about itself
// and supports little else.
func talk(t *testing.T, info string) (address string) {
	t.Helper()
	return trial.Serve(t, func(c net.Conn) {
		for r := bufio.NewReader(c); ; {
			command, err := request(r)
			if err != nil {
				return
			}
			answer := fmt.Sprintf("-ERR unknown command '%s'\r\n", command)
			switch command {
			case "ping":
				answer = "+PONG\r\n"
			case "client":
				answer = "+OK\r\n"
			case "config":
				answer = "*0\r\n"
			case "info":
				answer = fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
			}
			_, _ = io.WriteString(c, answer)
		}
	})
}

func request(r *bufio.Reader) (name string, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "*")))
	for i := 0; i < n && err == nil; i++ {
		if _, err = r.ReadString('\n'); err != nil { // $length: no argument here contains a line break
			break
		}
		line, err = r.ReadString('\n')
		if i == 0 {
			name = strings.ToLower(strings.TrimSpace(line))
		}
	}
	return name, err
}

func TestOldServerIsRejected(t *testing.T) {
	for _, x := range []struct{ info, aof, want string }{
		{"redis_version:5.0.14\r\nrole:master\r\n", "false", "redis-server 5.0.14 is too old (7.0 or later)"},
		{"redis_version:6.2.14\r\nrole:master\r\n", "false", "redis-server 6.2.14 is too old (7.0 or later)"},
		{"redis_version:7.0.15\r\nrole:master\r\n", "true", "redis-server 7.0.15 has no WAITAOF (7.2 or later)"},
		{"redis_version:7.2.4\r\nrole:master\r\ncluster_enabled:1\r\n", "false", "node of a Redis Cluster"},
		{"redis_version:7.2.4\r\nrole:slave\r\n", "false", "is a slave, no master"},
	} {
		trial.Refuses(t, Definition(), trial.At([]string{talk(t, x.info)}, nil),
			trial.Mistake{Name: x.info, Set: []string{"wait-aof", x.aof}, Is: driver.ErrUnsupported, Says: x.want})
	}
}
