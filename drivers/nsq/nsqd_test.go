package nsq

import (
	"context"
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

// open connects with options.
func open(t testing.TB, run driver.Run, options map[string][]string) driver.Conn {
	t.Helper()
	c, err := tryOpen(t, run, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func tryOpen(t testing.TB, run driver.Run, options map[string][]string) (driver.Conn, error) {
	t.Helper()
	return trial.Open(t, Definition(), run, options)
}

// producerOf opens a producer to destination d that completes at done.
func producerOf(t testing.TB, c driver.Conn, done driver.Completer) *producer {
	t.Helper()
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: 1}
	if err := c.Declare(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 1000}, done)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Close(context.Background())
		_ = c.Delete(context.Background(), d)
	})
	return p.(*producer)
}
