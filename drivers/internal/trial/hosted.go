package trial

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
)

// Encrypted starts a TLS proxy for an address, with the certificate in the files cert and key,
// until the end of the test. It returns the listening address.
func Encrypted(t testing.TB, address, cert, key string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return Serve(t, func(c net.Conn) { join(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{pair}}), address) })
}

// Serve accepts connections at a loopback address, and calls serve for each on a goroutine of its
// own. A connection is closed when serve returns, and all are closed at the end of the test.
func Serve(t testing.TB, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer context.AfterFunc(ctx, func() { _ = c.Close() })()
				serve(c)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		cancel()
		all.Wait()
	})
	return l.Addr().String()
}

// Silent returns the address of a server that accepts connections but sends nothing, until the end
// of the test.
func Silent(t testing.TB) (address string) {
	t.Helper()
	return Serve(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
}

// join copies both ways between a connection and one to address, until either ends.
func join(a net.Conn, address string) {
	b, err := net.Dial("tcp", address)
	if err != nil {
		_ = a.Close()
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(b, a)
		_ = b.Close()
	}()
	_, _ = io.Copy(a, b)
	_ = a.Close()
	_ = b.Close()
	<-back
}

// A Mistake is a possible user error, with "wr0ng" as the password.
type Mistake struct {
	Name   string
	Set    []string // options: alternating names and values
	Option string   // that the error names; "": another error
	Is     error    // nil: any
	Says   string
}

// Refuses opens a Conn with each mistake added to the options, and checks that the error matches,
// without revealing the password.
func Refuses(t *testing.T, def driver.Definition, options map[string][]string, mistakes ...Mistake) {
	t.Helper()
	for _, m := range mistakes {
		c, err := Open(t, def, driver.Run{}, options, m.Set...)
		if err == nil {
			_ = c.Close(context.Background())
			t.Errorf("%s: opens", m.Name)
			continue
		}
		var bad *driver.OptionError
		about := m.Option == "" || errors.As(err, &bad) && bad.Name == m.Option
		if !about || m.Is != nil && !errors.Is(err, m.Is) || !strings.Contains(err.Error(), m.Says) || strings.Contains(err.Error(), "wr0ng") {
			t.Errorf("%s: %v; want %v, %q, option %q, and no password", m.Name, err, m.Is, m.Says, m.Option)
		}
	}
}

// NoProducer checks that a producer is refused.
func NoProducer(t testing.TB, c driver.Conn, spec driver.ProducerSpec, what string, is error, says string) {
	t.Helper()
	p, err := c.Producer(t.Context(), spec, NewLog())
	if err == nil {
		_ = p.Close(context.Background())
	}
	fails(t, what, err, is, says)
}

// NoConsumer checks that a consumer is refused.
func NoConsumer(t testing.TB, c driver.Conn, spec driver.ConsumerSpec, what string, is error, says string) {
	t.Helper()
	x, err := c.Consumer(t.Context(), spec)
	if err == nil {
		_ = x.Close(context.Background())
	}
	fails(t, what, err, is, says)
}

func fails(t testing.TB, what string, err, is error, says string) {
	t.Helper()
	if !errors.Is(err, is) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v; want %v, %q", what, err, is, says)
	}
}

// Hosted tests a service through options: 20 messages must be confirmed and delivered, and the
// mistakes rejected (Refuses).
func Hosted(t *testing.T, def driver.Definition, options map[string][]string, mistakes ...Mistake) {
	t.Helper()
	const n = 20
	c := Declared(t, def, options)
	p, f := Producer(t, c, "d")
	var got counter
	got.ready = make(chan struct{})
	_, end := Run(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, &got)
	select {
	case <-got.ready:
	case <-time.After(Patience):
		t.Fatal("the consumer is not ready")
	}
	if confirmed := f.Confirmed(t, p, n); confirmed != n {
		t.Errorf("%d of %d messages confirmed", confirmed, n)
	}
	if !Eventually(func() bool { return got.n.Load() >= n }) || got.n.Load() != n {
		t.Errorf("%d of %d messages delivered", got.n.Load(), n)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	Refuses(t, def, options, mistakes...)
}

// A counter counts deliveries.
type counter struct {
	ready chan struct{}
	n     atomic.Int64
}

func (c *counter) Ready() { close(c.ready) }

func (c *counter) Deliver(ds []driver.Delivery) error {
	c.n.Add(int64(len(ds)))
	return nil
}

func (c *counter) Settled([]driver.Delivery, error) {}

func (c *counter) Fault(error) {}
