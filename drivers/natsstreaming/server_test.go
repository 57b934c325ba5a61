package natsstreaming

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/needs"
)

// patience bounds every wait: a host may be slow.
const patience = time.Minute

// A server is one that is started by hand, with what the recipe does not set.
type server struct {
	address, monitor string
	cmd              *exec.Cmd
	said             *bytes.Buffer
}

// options are those by which a driver finds it.
func (s *server) options(more ...string) map[string][]string {
	o := map[string][]string{"address": {s.address}, "monitor": {s.monitor}}
	for i := 0; i < len(more); i += 2 {
		o[more[i]] = []string{more[i+1]}
	}
	return o
}

// start starts a server of the vendor's defaults and args, for the length of the
// test. It returns when its ports are open, which is all that is known of a server
// that lets nobody in.
func start(t testing.TB, args ...string) *server {
	t.Helper()
	ports := freePorts(t)
	return startAt(t, ports[0], ports[1], args...)
}

// freePorts returns two that differ.
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

// program returns where the recipe's program is, and installs it where it is not
// there yet.
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

// A book keeps what a producer and a consumer tell.
type book struct {
	mu     sync.Mutex
	fates  map[string]error // by payload
	got    []string         // payloads, redelivered ones with a + behind them
	faults []error
	events []string
	ready  int
	refuse func(payload string) bool
}

func newBook() *book { return &book{fates: map[string]error{}} }

func (b *book) Complete(m *driver.Message, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fates[string(m.Payload)] = err
}

func (b *book) Ready() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready++
}

func (b *book) Deliver(ds []driver.Delivery) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range ds {
		p := string(d.Payload)
		again := ""
		if d.Redelivered {
			again = "+"
		}
		b.got = append(b.got, p+again)
		if b.refuse != nil && b.refuse(p) {
			return errors.New("refused")
		}
	}
	return nil
}

func (b *book) Settled([]driver.Delivery, error) {}

func (b *book) Fault(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, err)
}

func (b *book) event(kind, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, kind+": "+text)
}

// until waits until what was told satisfies ok.
func (b *book) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		b.mu.Lock()
		done := ok()
		b.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			b.mu.Lock()
			defer b.mu.Unlock()
			t.Fatalf("%s: not within %v; got %q, fates %v, faults %v, events %q", what, patience, b.got, b.fates, b.faults, b.events)
		}
	}
}

// has reports whether a payload was delivered, again or for the first time.
func (b *book) has(payload string) bool {
	for _, g := range b.got {
		if g == payload || g == payload+"+" {
			return true
		}
	}
	return false
}

func tryOpen(t testing.TB, run driver.Run, options map[string][]string) (driver.Conn, error) {
	t.Helper()
	cfg := Definition().New()
	for k, v := range options {
		if err := driver.SetOption(cfg, k, v...); err != nil {
			t.Fatal(err)
		}
	}
	if err := driver.Check(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return driver.Open(ctx, Definition(), cfg, run)
}

// inside returns the Conn behind the guard.
func inside(c driver.Conn) *conn { return driver.Inside(c).(*conn) }

// monitorsAt returns those of a cluster of weir's.
func monitorsAt(t testing.TB, addresses ...string) *monitors {
	t.Helper()
	m, err := newMonitors(&Config{ClusterID: "weir", Monitor: addresses})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.web.Close)
	return m
}

// open connects, and declares destinations of one replica. The connection is closed
// when the test ends.
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

// send publishes payloads and waits for their ends, and fails with the first that
// was not confirmed.
func send(t testing.TB, p *producer, b *book, payloads ...string) {
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
		b.mu.Lock()
		err := b.fates[s]
		b.mu.Unlock()
		if err != nil {
			t.Fatalf("message %q: %v", s, err)
		}
	}
}

// numbered returns n payloads.
func numbered(label string, n int) []string {
	ps := make([]string, n)
	for i := range ps {
		ps[i] = fmt.Sprintf("%s-%04d", label, i)
	}
	return ps
}

// consume opens a consumer and runs it until stop is called, which returns what Run
// did.
func consume(t testing.TB, c driver.Conn, spec driver.ConsumerSpec, b *book) (stop func() error) {
	t.Helper()
	x, err := c.Consumer(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.mu.Lock()
	before := b.ready
	b.mu.Unlock()
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, b) }()
	var once sync.Once
	var result error
	stop = func() error {
		once.Do(func() {
			cancel()
			select {
			case result = <-ended:
			case <-time.After(patience):
				result = errors.New("Run does not end")
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_ = x.Close(ctx)
		})
		return result
	}
	t.Cleanup(func() { _ = stop() })
	b.until(t, "ready", func() bool { return b.ready > before || len(ended) > 0 })
	return stop
}
