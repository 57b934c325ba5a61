package natsdial

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/internal/must"
)

// A client delayed before its first message is pinged by the server, and takes the ping for the reply.
func TestOvertakenConnectionIsRedialed(t *testing.T) {
	for _, times := range []int{0, 1, attempts, attempts + 1} {
		nc, err := Connect(t.Context(), to(hasty(t, times)))
		if (err == nil) != (times <= attempts) {
			t.Errorf("overtaken %d times: %v", times, err)
		}
		if err == nil {
			nc.Close()
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Connect(over, to(hasty(t, 1))); err == nil || !overtaken(err) {
		t.Errorf("tried again though nobody waits: %v", err)
	}
}

func TestCredentialErrors(t *testing.T) {
	for err, want := range map[error]bool{
		nats.ErrAuthorization:                     true,
		fmt.Errorf("x: %w", nats.ErrAuthExpired):  true,
		fmt.Errorf("'Authorization Violation'"):   true,
		nats.ErrTimeout:                           false,
		fmt.Errorf("expected 'PONG', got 'PING'"): false,
	} {
		if IsAuth(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

func to(address string) nats.Option {
	return func(o *nats.Options) error {
		o.Url = "nats://" + strings.TrimPrefix(address, "nats://")
		return nil
	}
}

// hasty returns a server that pings the given number of times before it answers.
func hasty(t *testing.T, times int) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { _ = l.Close() })
	serving.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				_, _ = io.WriteString(c, `INFO {"server_id":"x","version":"2.10.0","proto":1,"max_payload":1048576,"headers":true}`+"\r\n")
				if n <= times {
					_, _ = io.WriteString(c, "PING\r\n")
				}
				for said := bufio.NewScanner(c); said.Scan(); {
					if said.Text() == "PING" {
						_, _ = io.WriteString(c, "PONG\r\n")
					}
				}
			})
		}
	})
	return l.Addr().String()
}
