package natsstreaming

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/needs"
)

// patience limits every wait, because a host may be slow.
const patience = time.Minute

// A server is started without the recipe, with settings that the recipe lacks.
type server struct {
	address, monitor string
	cmd              *exec.Cmd
	said             *bytes.Buffer
}

// options returns the options that connect a driver to it.
func (s *server) options(more ...string) map[string][]string {
	o := map[string][]string{"address": {s.address}, "monitor": {s.monitor}}
	for i := 0; i < len(more); i += 2 {
		o[more[i]] = []string{more[i+1]}
	}
	return o
}

// start starts a server with the vendor's defaults and args, for the duration of the test. It
// returns when its ports are open, which is all that can be checked without credentials.
func start(t testing.TB, args ...string) *server {
	t.Helper()
	ports := freePorts(t)
	return startAt(t, ports[0], ports[1], args...)
}

// freePorts returns two different ports.
func freePorts(t testing.TB) (ports [2]string) {
	t.Helper()
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // when both are known
		ports[i] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func startAt(t testing.TB, port, monitor string, args ...string) *server {
	t.Helper()
	s := &server{address: "127.0.0.1:" + port, monitor: "http://127.0.0.1:" + monitor, said: &bytes.Buffer{}}
	s.cmd = exec.Command(program(t), append([]string{"-a", "127.0.0.1", "-p", port, "-m", monitor}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Dir = s.said, s.said, t.TempDir()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		open := 0
		for _, a := range []string{s.address, "127.0.0.1:" + monitor} {
			if c, err := net.Dial("tcp", a); err == nil {
				_ = c.Close()
				open++
			}
		}
		if open == 2 {
			return s
		}
	}
	s.kill()
	t.Fatalf("the server did not start: %s", s.said)
	return nil
}

func (s *server) kill() {
	_ = s.cmd.Process.Signal(syscall.SIGKILL)
	_ = s.cmd.Wait()
}

// program returns the path of the recipe's program, which it installs if necessary.
func program(t testing.TB) string {
	t.Helper()
	r, err := broker.RecipeOf(Definition(), "")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := broker.CacheDir(os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := broker.Ensure(t.Context(), broker.Installing{Self: self, Driver: Definition().Name, Recipe: r, Cache: cache})
	if errors.Is(err, broker.ErrMissing) {
		needs.Host(t, "servers", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return in.Programs["nats-streaming-server"]
}

func tryOpen(t testing.TB, run driver.Run, options map[string][]string) (driver.Conn, error) {
	t.Helper()
	return trial.Open(t, Definition(), run, options)
}

// inside returns the Conn behind the guard.
func inside(c driver.Conn) *conn { return driver.Inside(c).(*conn) }

// monitorsAt returns the monitors of one of weir's clusters.
func monitorsAt(t testing.TB, addresses ...string) *monitors {
	t.Helper()
	m, err := newMonitors(&Config{ClusterID: "weir", Monitor: addresses})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.web.Close)
	return m
}

// open connects, and declares destinations with one replica. The connection is closed at the end of
// the test.
func open(t testing.TB, run driver.Run, options map[string][]string, destinations ...string) driver.Conn {
	t.Helper()
	c, err := tryOpen(t, run, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = c.Close(ctx)
	})
	for _, d := range destinations {
		if err := c.Declare(t.Context(), driver.Destination{Name: d, Partitions: 1, Replicas: 1}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// produce opens a producer to d.
func produce(t testing.TB, c driver.Conn, done driver.Completer, destination string) *producer {
	t.Helper()
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{destination}, InFlight: 100}, done)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = p.Close(ctx)
	})
	return p.(*producer)
}

// send publishes payloads and waits for their completion, and fails at the first unconfirmed one.
func send(t testing.TB, p *producer, b *trial.Log, payloads ...string) {
	t.Helper()
	destination := ""
	for d := range p.channels.All() {
		destination = d
	}
	for _, s := range payloads {
		p.Publish(t.Context(), &driver.Message{Destination: destination, Payload: []byte(s)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for _, s := range payloads {
		b.Lock()
		err := b.Done[s]
		b.Unlock()
		if err != nil {
			t.Fatalf("message %q: %v", s, err)
		}
	}
}

func numbered(label string, n int) []string {
	ps := make([]string, n)
	for i := range ps {
		ps[i] = fmt.Sprintf("%s-%04d", label, i)
	}
	return ps
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
