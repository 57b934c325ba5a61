package nsq

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// A server is an nsqd or an nsqlookupd with a test's own arguments.
type server struct {
	*served.Process
	tcp, http string // host:port
}

// startServer starts a program with two consecutive ports, as the driver expects them, for the
// duration of the test.
func startServer(t testing.TB, name string, args ...string) *server {
	t.Helper()
	ports := served.FreePorts(t, 2)
	s := &server{tcp: fmt.Sprintf("127.0.0.1:%d", ports[0]), http: fmt.Sprintf("127.0.0.1:%d", ports[1])}
	s.Process = served.Start(t, Definition(), served.Spec{
		Program: name,
		Args:    append([]string{"-tcp-address=" + s.tcp, "-http-address=" + s.http, "-broadcast-address=127.0.0.1"}, args...),
		Ready: func() error {
			r, err := http.Get("http://" + s.http + "/ping")
			if err == nil {
				_ = r.Body.Close()
				http.DefaultClient.CloseIdleConnections()
			}
			return err
		},
	})
	return s
}

func open(t testing.TB, run driver.Run, options map[string][]string) driver.Conn {
	t.Helper()
	return trial.Opened(t, Definition(), run, options)
}

// producerOf declares the destination d, and opens a producer to it that completes at done.
func producerOf(t testing.TB, c driver.Conn, done driver.Completer) *producer {
	t.Helper()
	trial.Declare(t, c, trial.Plain("d"))
	return trial.Produce(t, c, done, "d").(*producer)
}
