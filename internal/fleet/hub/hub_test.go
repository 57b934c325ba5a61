package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/fleet/join"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A diary is a log that may be read while it is written.
type diary struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.b.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.b.String()
}

// lines returns how many have what in them.
func (d *diary) lines(what string) (n int) {
	for l := range strings.Lines(d.String()) {
		if strings.Contains(l, what) {
			n++
		}
	}
	return n
}

func (d *diary) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(d, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func keep(t *testing.T) *join.Keep {
	t.Helper()
	k, err := join.Open(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func token(t *testing.T, k *join.Keep, life time.Duration) join.Token {
	t.Helper()
	x, err := k.New(life, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func begin(t *testing.T, o Options) *Hub {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func dialed(t *testing.T, a join.Address, more ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := Dial(t.Context(), a, "agent-1", nil, more...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// inside are the coordinator's own connections.
func inside(t *testing.T, h *Hub) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := h.Dial(t.Context(), "coordinator", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	books, err := h.DialBooks(t.Context(), "coordinator", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(books.Close)
	js, err := jetstream.New(books)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// reports makes the stream that agents report to.
func reports(t *testing.T, js jetstream.JetStream) jetstream.Stream {
	t.Helper()
	s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "reports", Subjects: []string{Reports + ">"}, AllowDirect: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A bystander is a client that keeps working, which is what nothing may disturb.
type bystander struct {
	nc   *nats.Conn
	done chan error
	stop chan struct{}
	n    int
}

// stand begins to send messages to itself, one after the other, until the end of the
// test; it fails the test when one does not come back or the connection was lost.
func stand(t *testing.T, a join.Address) *bystander {
	t.Helper()
	b := &bystander{nc: dialed(t, a), done: make(chan error, 1), stop: make(chan struct{})}
	sub, err := b.nc.SubscribeSync(Subjects + "bystander")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			select {
			case <-b.stop:
				b.done <- nil
				return
			default:
			}
			if err := b.nc.Publish(Subjects+"bystander", []byte("x")); err != nil {
				b.done <- err
				return
			}
			if _, err := sub.NextMsg(time.Minute); err != nil {
				b.done <- err
				return
			}
			b.n++
		}
	}()
	return b
}

// undisturbed ends it.
func (b *bystander) undisturbed(t *testing.T) {
	t.Helper()
	close(b.stop)
	if err := <-b.done; err != nil || b.n == 0 || b.nc.Stats().Reconnects != 0 {
		t.Errorf("beside it a client sent %d messages and connected %d times again: %v", b.n, b.nc.Stats().Reconnects, err)
	}
}

func TestAgentsMeetTheCoordinator(t *testing.T) {
	k := keep(t)
	for _, tt := range []struct {
		name   string
		keep   *join.Keep
		scheme string
	}{{"on loopback without TLS", nil, "nats://"}, {"with TLS and a token", k, "weir://"}} {
		t.Run(tt.name, func(t *testing.T) {
			h := begin(t, Options{Keep: tt.keep})
			a := h.JoinURL("", token(t, k, time.Hour))
			if !strings.HasPrefix(a.Reveal(), tt.scheme+"127.0.0.1:") {
				t.Errorf("join URL %s; want %s127.0.0.1:…", a, tt.scheme)
			}
			a, err := join.Parse(a.Reveal())
			if err != nil {
				t.Fatal(err)
			}
			coordinator, js := inside(t, h)
			s := reports(t, js)
			agent := dialed(t, a)
			if _, err := agent.Subscribe(Subjects+"ask", func(m *nats.Msg) { _ = m.Respond([]byte("pong")) }); err != nil {
				t.Fatal(err)
			}
			if err := agent.Flush(); err != nil {
				t.Fatal(err)
			}
			if m, err := coordinator.Request(Subjects+"ask", nil, time.Minute); err != nil || string(m.Data) != "pong" {
				t.Errorf("the agent answered %v, %v", m, err)
			}
			from, err := jetstream.New(agent)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := from.Publish(t.Context(), Reports+"agent-1", []byte("x")); err != nil {
				t.Errorf("a report: %v", err)
			}
			if i, err := s.Info(t.Context()); err != nil || i.State.Msgs != 1 {
				t.Errorf("the stream has %+v, %v; want one message", i, err)
			}
			if n := h.Clients(); n != 3 {
				t.Errorf("%d clients; want 3", n)
			}
		})
	}
}

func TestAHubStartsWhereItIsClosedToOthers(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	used := t.TempDir()
	begin(t, Options{Dir: used})
	for _, tt := range []struct {
		name string
		o    Options
		is   error
		want string
	}{
		{"all addresses, without tokens", Options{Listen: ":0"}, ErrInsecure, ""},
		{"all addresses by number", Options{Listen: "0.0.0.0:7622"}, ErrInsecure, ""},
		{"all addresses of IPv6", Options{Listen: "[::]:7622"}, ErrInsecure, ""},
		{"an address of a network", Options{Listen: "192.0.2.1:7622"}, ErrInsecure, ""},
		{"a name, which may be any address", Options{Listen: "localhost.example:7622"}, ErrInsecure, ""},
		{"a port that is taken", Options{Listen: taken.Addr().String()}, ErrPortTaken, ""},
		{"a folder that is used", Options{Dir: used}, ErrInUse, ""},
		{"no port", Options{Listen: "127.0.0.1"}, nil, "no HOST:PORT"},
		{"a port out of range", Options{Listen: "127.0.0.1:70000"}, nil, "0 to 65535"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.o.Dir == "" {
				tt.o.Dir = t.TempDir()
			}
			h, err := Start(t.Context(), tt.o)
			if err == nil {
				h.Close()
			}
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Start: %v; want %v %s", err, tt.is, tt.want)
			}
		})
	}
}

func TestWhoHasNoGoodTokenIsRefused(t *testing.T) {
	k := keep(t)
	good := token(t, k, 2*time.Hour)
	revoked := token(t, k, 2*time.Hour)
	if err := k.Revoke(revoked.ID()); err != nil {
		t.Fatal(err)
	}
	old, err := k.New(time.Minute, time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Now().Add(time.Hour)
	d := &diary{}
	h := begin(t, Options{Keep: k, Log: d.log(), Now: func() time.Time { return clock }})
	b := stand(t, h.JoinURL("", good))
	other := keep(t)
	for _, tt := range []struct {
		name  string
		token join.Token
		is    error
		said  string
	}{
		{"none", join.Token{}, driver.ErrAuth, "wrong token"},
		{"of another keep", token(t, other, time.Hour), driver.ErrAuth, "wrong token"},
		{"ended by the hub's clock", token(t, k, time.Minute), driver.ErrAuth, "expired"},
		{"revoked", revoked, driver.ErrAuth, "revoked"},
		{"ended by both clocks", old, join.ErrExpired, "expired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nc, err := Dial(t.Context(), h.JoinURL("", tt.token), "agent-2", nil)
			if err == nil {
				nc.Close()
			}
			if !errors.Is(err, tt.is) || !errors.Is(err, driver.ErrAuth) {
				t.Fatalf("Dial: %v; want %v", err, tt.is)
			}
			if s := d.String(); !strings.Contains(s, tt.said) || !strings.Contains(s, "from=127.0.0.1:") {
				t.Errorf("the log: %s; want the address, and %q", s, tt.said)
			}
			for _, secret := range []join.Token{tt.token, good} {
				if mac := secret.Reveal(); mac != "" && (strings.Contains(d.String(), mac[len(mac)-20:]) || strings.Contains(err.Error(), mac[len(mac)-20:])) {
					t.Error("a token is in the log or in the error")
				}
			}
		})
	}
	b.undisturbed(t)
}

func TestAnotherCertificateIsRefused(t *testing.T) {
	k := keep(t)
	h := begin(t, Options{Keep: k})
	good := h.JoinURL("", token(t, k, time.Hour))
	b := stand(t, good)
	wrong := good
	wrong.Pin = keep(t).Pin()
	_, err := Dial(t.Context(), wrong, "agent-2", nil)
	if !errors.Is(err, join.ErrPin) || !strings.Contains(err.Error(), wrong.Pin.String()) || !strings.Contains(err.Error(), k.Pin().String()) {
		t.Errorf("Dial: %v; want both fingerprints", err)
	}
	b.undisturbed(t)
}

func TestNobodyThereIsUnreachable(t *testing.T) {
	k := keep(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := begin(t, Options{Keep: k})
	a := h.JoinURL("", token(t, k, time.Hour))
	a.Host = l.Addr().String()
	// It accepts, and says nothing.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, a, "agent-1", nil); !errors.Is(err, driver.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that is silent: %v", err)
	}
	l.Close()
	if _, err := Dial(t.Context(), a, "agent-1", nil); !errors.Is(err, driver.ErrUnreachable) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("no server: %v", err)
	}
	plain := begin(t, Options{})
	a.Host = plain.Addr()
	if _, err := Dial(t.Context(), a, "agent-1", nil); !errors.Is(err, driver.ErrUnreachable) || strings.Contains(err.Error(), a.Token.Reveal()) {
		t.Errorf("a server without TLS: %v", err)
	}
}

func TestAHubStartedAgainHasItsStreams(t *testing.T) {
	dir, k := t.TempDir(), keep(t)
	d := &diary{}
	h := begin(t, Options{Dir: dir, Keep: k, Log: d.log()})
	at, a := h.Addr(), h.JoinURL("", token(t, k, time.Hour))
	_, js := inside(t, h)
	reports(t, js)
	back := make(chan struct{}, 1)
	agent := dialed(t, a, nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }))
	from, err := jetstream.New(agent)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := from.Publish(t.Context(), Reports+"a", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	h.Close()
	h = begin(t, Options{Dir: dir, Keep: k, Listen: at})
	select {
	case <-back:
	case <-time.After(time.Minute):
		t.Fatal("the agent has not come back")
	}
	if _, err := from.Publish(t.Context(), Reports+"a", []byte("10")); err != nil {
		t.Fatal(err)
	}
	_, js = inside(t, h)
	s, err := js.Stream(t.Context(), "reports")
	if err != nil {
		t.Fatal(err)
	}
	if i := s.CachedInfo(); i.State.Msgs != 11 || i.State.LastSeq != 11 {
		t.Errorf("the stream has %+v; want 11 messages", i.State)
	}
}

func TestAnAgentWhoseTokenEndedDoesNotComeBack(t *testing.T) {
	dir, k := t.TempDir(), keep(t)
	h := begin(t, Options{Dir: dir, Keep: k})
	at := h.Addr()
	good, short := token(t, k, 2*time.Hour), token(t, k, time.Hour)
	back, closed := make(chan struct{}, 1), make(chan error, 1)
	dialed(t, h.JoinURL("", good), nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }))
	dialed(t, h.JoinURL("", short), nats.ClosedHandler(func(nc *nats.Conn) { closed <- nc.LastError() }))
	h.Close()
	begin(t, Options{Dir: dir, Keep: k, Listen: at, Now: func() time.Time { return time.Now().Add(time.Hour) }})
	limit := time.After(time.Minute)
	for range 2 {
		select {
		case <-back:
		case err := <-closed:
			if !errors.Is(err, nats.ErrAuthorization) {
				t.Errorf("the agent was closed by %v; want its token refused", err)
			}
		case <-limit:
			t.Fatal("not within a minute: one agent is back, and the other's connection is given up")
		}
	}
}

// raw is a client that says what it likes.
func raw(t *testing.T, h *Hub) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", h.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func TestWhoSendsWhatIsNotAllowedIsClosedAlone(t *testing.T) {
	d := &diary{}
	h := begin(t, Options{Log: d.log()})
	b := stand(t, h.JoinURL("", join.Token{}))
	big := fmt.Sprintf("CONNECT {}\r\nPUB %sx %d\r\n", Subjects, MaxPayload+1)
	for _, tt := range []struct{ name, says, want string }{
		{"a message that is too large", big, "Maximum Payload"},
		{"what is no NATS", "GET / HTTP/1.1\r\n\r\n", "Authorization Violation"},
		{"a line without end", "CONNECT {}\r\nPUB " + strings.Repeat("x", 1<<16), ""},
		{"nothing at all", "", "Authentication Timeout"},
		{"no JSON", "CONNECT {\r\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := raw(t, h)
			_, _ = io.WriteString(c, tt.says)
			answer, err := io.ReadAll(c)
			if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
				t.Fatal("it was not closed")
			}
			if !strings.Contains(string(answer), tt.want) {
				t.Errorf("the hub said %q; want %q", answer, tt.want)
			}
		})
	}
	b.undisturbed(t)
}

func TestTheFolderIsItsOwnersOnly(t *testing.T) {
	dir := t.TempDir() + "/a/b"
	begin(t, Options{Dir: dir})
	if i, err := os.Stat(dir); err != nil || i.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v; want mode 0700", i, err)
	}
}
