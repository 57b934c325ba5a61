package natsstreaming

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// A server runs with the vendor's defaults and a test's own arguments.
type server struct {
	*served.Process
	address, monitor string
}

// options returns the options that connect a driver to it.
func (s *server) options(more ...string) map[string][]string {
	o := map[string][]string{"address": {s.address}, "monitor": {s.monitor}}
	for i := 0; i < len(more); i += 2 {
		o[more[i]] = []string{more[i+1]}
	}
	return o
}

// start starts a server for the duration of the test. It returns when its ports are open, which is
// all that can be checked without credentials.
func start(t testing.TB, args ...string) *server {
	t.Helper()
	ports := served.FreePorts(t, 2)
	port, monitor := fmt.Sprint(ports[0]), fmt.Sprint(ports[1])
	s := &server{address: "127.0.0.1:" + port, monitor: "http://127.0.0.1:" + monitor}
	s.Process = served.Start(t, Definition(), served.Spec{
		Program: "nats-streaming-server", Args: append([]string{"-a", "127.0.0.1", "-p", port, "-m", monitor}, args...),
		Ready: func() error { return errors.Join(listens(port), listens(monitor)) },
	})
	return s
}

func listens(port string) error {
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err == nil {
		err = c.Close()
	}
	return err
}

// inside returns the Conn behind the guard.
func inside(c driver.Conn) *conn { return driver.Inside(c).(*conn) }

// monitorsAt returns the monitors of one of weir's clusters.
func monitorsAt(t testing.TB, addresses ...string) *monitors {
	t.Helper()
	m := must.Get(newMonitors(&Config{ClusterID: "weir", Monitor: addresses}))(t)
	t.Cleanup(m.web.Close)
	return m
}

// open connects, and declares destinations with one replica.
func open(t testing.TB, run driver.Run, options map[string][]string, destinations ...string) driver.Conn {
	t.Helper()
	c := trial.Opened(t, Definition(), run, options)
	for _, d := range destinations {
		trial.Declare(t, c, trial.Plain(d))
	}
	return c
}

func produce(t testing.TB, c driver.Conn, done driver.Completer, destination string) *producer {
	t.Helper()
	return trial.Produce(t, c, done, destination).(*producer)
}

// consume opens a consumer and runs it until stop is called, which returns Run's error.
func consume(t testing.TB, c driver.Conn, spec driver.ConsumerSpec, b *trial.Log) (stop func() error) {
	t.Helper()
	_, stop = trial.Run(t, c, spec, b)
	b.WaitReady(t)
	return stop
}

// has reports whether a payload was delivered. The Log is locked.
func has(b *trial.Log, payload string) bool { return slices.Contains(b.Got, payload) }
