package hub

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func token(t *testing.T, k *admission.Keep, life time.Duration) admission.Token {
	t.Helper()
	return must.Get(k.New(life, time.Now()))(t)
}

// self makes the keys of a process.
func self(t *testing.T) *admission.Self {
	t.Helper()
	return must.Get(admission.NewSelf())(t)
}

// own is the address of a hub for agents of its host and user.
func own(h *Hub) admission.Address { return h.keep.Own(h.JoinURL("", admission.Token{})) }

func begin(t *testing.T, o Options) *Hub {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := must.Get(Start(ctx, o))(t)
	t.Cleanup(h.Close)
	return h
}

func dialed(t *testing.T, a admission.Address, more ...nats.Option) *nats.Conn {
	t.Helper()
	nc, _ := known(t, a, more...)
	return nc
}

// known is dialed, and by which ID.
func known(t *testing.T, a admission.Address, more ...nats.Option) (nc *nats.Conn, id string) {
	t.Helper()
	s := self(t)
	nc = must.Get(Dial(t.Context(), a, s, "agent-1", nil, more...))(t)
	t.Cleanup(nc.Close)
	return nc, s.ID()
}

// inside are the coordinator's own connections.
func inside(t *testing.T, h *Hub) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc := must.Get(h.Dial(t.Context(), "coordinator", nil))(t)
	t.Cleanup(nc.Close)
	account := must.Get(h.DialReports(t.Context(), "coordinator", nil))(t)
	t.Cleanup(account.Close)
	js := must.Get(jetstream.New(account))(t)
	return nc, js
}

// reports makes the stream that agents report to.
func reports(t *testing.T, js jetstream.JetStream) jetstream.Stream {
	t.Helper()
	return must.Get(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "reports", Subjects: []string{Reports + ">"}, AllowDirect: true}))(t)
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
func stand(t *testing.T, a admission.Address) *bystander {
	t.Helper()
	nc, id := known(t, a)
	b := &bystander{nc: nc, done: make(chan error, 1), stop: make(chan struct{})}
	own := Subjects + "ask." + id + ".own"
	sub := must.Get(b.nc.SubscribeSync(own))(t)
	go func() {
		for {
			select {
			case <-b.stop:
				b.done <- nil
				return
			default:
			}
			if err := b.nc.Publish(own, []byte("x")); err != nil {
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
	h := begin(t, Options{Keep: fleettest.Keep(t)})
	a := must.Get(admission.Parse(h.JoinURL("", token(t, h.keep, time.Hour)).Reveal()))(t)
	local, ok := h.OwnURL()
	if !ok || !local.IsOwn() || local.String() != "weir://"+h.Addr() {
		t.Errorf("for agents of this user: %s, %v", local, ok)
	}
	if _, err := Dial(t.Context(), local, self(t), "agent-1", nil); !errors.Is(err, admission.ErrPin) {
		t.Errorf("an address without a fingerprint was dialed: %v", err)
	}
	coordinator, js := inside(t, h)
	s := reports(t, js)
	for n, a := range []admission.Address{a, h.keep.Own(local)} {
		agent, id := known(t, a)
		must.Get(agent.Subscribe(Orders+"agent."+id+".job", func(m *nats.Msg) { _ = m.Respond([]byte("pong")) }))(t)
		must.Do(t, agent.Flush())
		if m, err := coordinator.Request(Orders+"agent."+id+".job", nil, time.Minute); err != nil || string(m.Data) != "pong" {
			t.Errorf("the agent answered %v, %v", m, err)
		}
		from := must.Get(jetstream.New(agent))(t)
		if _, err := from.Publish(t.Context(), Reports+"s.r."+id, []byte("x")); err != nil {
			t.Errorf("a report: %v", err)
		}
		if i, err := s.Info(t.Context()); err != nil || i.State.Msgs != uint64(n)+1 {
			t.Errorf("the stream has %+v, %v; want %d messages", i, err, n+1)
		}
	}
	if n := h.Clients(); n != 4 {
		t.Errorf("%d clients; want 4", n)
	}
}

func TestHubStartsOnlyOnPrivateResources(t *testing.T) {
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	used, k := t.TempDir(), fleettest.Keep(t)
	begin(t, Options{Keep: fleettest.Keep(t), Dir: used})
	for _, tt := range []struct {
		name string
		o    Options
		is   error
		want string
	}{
		{"all addresses, without tokens", Options{Listen: ":0"}, ErrInsecure, ""},
		{"loopback, without tokens", Options{}, ErrInsecure, ""},
		{"a port that is taken", Options{Keep: k, Listen: taken.Addr().String()}, ErrPortTaken, ""},
		{"a folder that is used", Options{Keep: k, Dir: used}, ErrInUse, ""},
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

func TestInvalidTokenIsRejected(t *testing.T) {
	k := fleettest.Keep(t)
	good := token(t, k, 2*time.Hour)
	revoked := token(t, k, 2*time.Hour)
	must.Do(t, k.Revoke(revoked.ID()))
	old := must.Get(k.New(time.Minute, time.Now().Add(-time.Hour)))(t)
	clock := time.Now().Add(time.Hour)
	d := &fleettest.Diary{}
	h := begin(t, Options{Keep: k, Log: d.Log(), Now: func() time.Time { return clock }})
	b := stand(t, h.JoinURL("", good))
	other := fleettest.Keep(t)
	for _, tt := range []struct {
		name  string
		token admission.Token
		is    error
		said  string
	}{
		{"none", admission.Token{}, driver.ErrAuth, "wrong token"},
		{"of another keep", token(t, other, time.Hour), driver.ErrAuth, "wrong token"},
		{"ended by the hub's clock", token(t, k, time.Minute), driver.ErrAuth, "expired"},
		{"revoked", revoked, driver.ErrAuth, "revoked"},
		{"ended by both clocks", old, admission.ErrExpired, "expired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nc, err := Dial(t.Context(), h.JoinURL("", tt.token), self(t), "agent-2", nil)
			if err == nil {
				nc.Close()
			}
			if !errors.Is(err, tt.is) || !errors.Is(err, driver.ErrAuth) {
				t.Fatalf("Dial: %v; want %v", err, tt.is)
			}
			if s := d.String(); !strings.Contains(s, tt.said) || !strings.Contains(s, "from=127.0.0.1 port=") {
				t.Errorf("the log: %s; want the address, and %q", s, tt.said)
			}
			for _, secret := range []admission.Token{tt.token, good} {
				if mac := secret.Reveal(); mac != "" && (strings.Contains(d.String(), mac[len(mac)-20:]) || strings.Contains(err.Error(), mac[len(mac)-20:])) {
					t.Error("a token is in the log or in the error")
				}
			}
		})
	}
	b.undisturbed(t)
}

func TestAnotherCertificateIsRefused(t *testing.T) {
	k := fleettest.Keep(t)
	h := begin(t, Options{Keep: k})
	good := h.JoinURL("", token(t, k, time.Hour))
	b := stand(t, good)
	wrong := good
	wrong.Pin = fleettest.Keep(t).Pin()
	_, err := Dial(t.Context(), wrong, self(t), "agent-2", nil)
	if !errors.Is(err, admission.ErrPin) || !strings.Contains(err.Error(), wrong.Pin.String()) || !strings.Contains(err.Error(), k.Pin().String()) {
		t.Errorf("Dial: %v; want both fingerprints", err)
	}
	b.undisturbed(t)
}

func TestAbsentHubIsUnreachable(t *testing.T) {
	k := fleettest.Keep(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	h := begin(t, Options{Keep: k})
	a := h.JoinURL("", token(t, k, time.Hour))
	a.Host = l.Addr().String()
	// It accepts, and says nothing.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, a, self(t), "agent-1", nil); !errors.Is(err, driver.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that is silent: %v", err)
	}
	l.Close()
	if _, err := Dial(t.Context(), a, self(t), "agent-1", nil); !errors.Is(err, driver.ErrUnreachable) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("no server: %v", err)
	}
}

func TestRestartedHubKeepsStreams(t *testing.T) {
	dir, k := t.TempDir(), fleettest.Keep(t)
	d := &fleettest.Diary{}
	h := begin(t, Options{Dir: dir, Keep: k, Log: d.Log()})
	at, a := h.Addr(), h.JoinURL("", token(t, k, time.Hour))
	_, js := inside(t, h)
	reports(t, js)
	back := make(chan struct{}, 1)
	agent, id := known(t, a, nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }))
	from := must.Get(jetstream.New(agent))(t)
	for i := range 10 {
		must.Get(from.Publish(t.Context(), Reports+"s.r."+id, fmt.Append(nil, i)))(t)
	}
	h.Close()
	h = begin(t, Options{Dir: dir, Keep: k, Listen: at})
	select {
	case <-back:
	case <-time.After(time.Minute):
		t.Fatal("the agent has not come back")
	}
	must.Get(from.Publish(t.Context(), Reports+"s.r."+id, []byte("10")))(t)
	_, js = inside(t, h)
	s := must.Get(js.Stream(t.Context(), "reports"))(t)
	if i := s.CachedInfo(); i.State.Msgs != 11 || i.State.LastSeq != 11 {
		t.Errorf("the stream has %+v; want 11 messages", i.State)
	}
}

func TestExpiredTokenPreventsReconnect(t *testing.T) {
	dir, k := t.TempDir(), fleettest.Keep(t)
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

// raw is a client that says what it likes, once TLS is made; nonce is what the hub has
// it sign.
func raw(t *testing.T, h *Hub) (c net.Conn, nonce string) {
	t.Helper()
	c = must.Get(tls.Dial("tcp", h.Addr(), h.keep.Pin().TLS()))(t)
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	line, err := bufio.NewReaderSize(io.LimitReader(c, 4096), 1).ReadString('\n')
	var info struct{ Nonce string }
	if err == nil {
		err = json.Unmarshal([]byte(strings.TrimPrefix(line, "INFO ")), &info)
	}
	if err != nil || info.Nonce == "" {
		t.Fatalf("%q: %v", line, err)
	}
	return c, info.Nonce
}

// signed is how a client with a good token, a key and that signature connects.
func signed(t *testing.T, h *Hub, id string, sig []byte) string {
	t.Helper()
	return fmt.Sprintf(`CONNECT {"auth_token":%q,"nkey":%q,"sig":%q}`+"\r\n", own(h).Token.Reveal(), id, base64.RawURLEncoding.EncodeToString(sig))
}

func TestOnlyMisbehavingClientIsDisconnected(t *testing.T) {
	h := begin(t, Options{Keep: fleettest.Keep(t)})
	b := stand(t, own(h))
	s, other := self(t), self(t)
	sign := func(s *admission.Self, nonce string) []byte {
		return must.Get(s.Sign([]byte(nonce)))(t)
	}
	for _, tt := range []struct {
		name string
		says func(nonce string) string
		want string
	}{
		{"a message that is too large", func(n string) string {
			return signed(t, h, s.ID(), sign(s, n)) + fmt.Sprintf("PUB %sask.x %d\r\n", Subjects, MaxPayload+1)
		}, "Maximum Payload"},
		{"a line without end", func(n string) string {
			return signed(t, h, s.ID(), sign(s, n)) + "PUB " + strings.Repeat("x", 1<<16)
		}, ""},
		{"no signature", func(string) string { return signed(t, h, s.ID(), nil) }, "Authorization Violation"},
		{"no key", func(n string) string { return signed(t, h, "", sign(s, n)) }, "Authorization Violation"},
		{"the key of another", func(n string) string { return signed(t, h, other.ID(), sign(s, n)) }, "Authorization Violation"},
		{"the signature of another connection", func(string) string { return signed(t, h, s.ID(), sign(s, "before")) }, "Authorization Violation"},
		{"a key and no token", func(n string) string {
			return strings.Replace(signed(t, h, s.ID(), sign(s, n)), "auth_token", "name", 1)
		}, "Authorization Violation"},
		{"what is no NATS", func(string) string { return "GET / HTTP/1.1\r\n\r\n" }, "Authorization Violation"},
		{"nothing at all", func(string) string { return "" }, "Authentication Timeout"},
		{"no JSON", func(string) string { return "CONNECT {\r\n" }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, nonce := raw(t, h)
			_, _ = io.WriteString(c, tt.says(nonce))
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

func TestFolderIsPrivateToOwner(t *testing.T) {
	dir := t.TempDir() + "/a/b"
	begin(t, Options{Keep: fleettest.Keep(t), Dir: dir})
	if i, err := os.Stat(dir); err != nil || i.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v; want mode 0700", i, err)
	}
}
