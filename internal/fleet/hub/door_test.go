package hub

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/must"
)

// TestMalformedJoinsAreIgnored has a coordinator's door behind a hub, and all kinds
// of joins in front of it.
func TestMalformedJoinsAreIgnored(t *testing.T) {
	k := fleettest.Keep(t)
	h := begin(t, Options{Keep: k})
	x := token(t, k, time.Hour)
	a := h.JoinURL("", x)
	door := admission.NewAuthenticator(k, "v1", nil)
	coordinator, _ := inside(t, h)
	verdicts := make(chan error, 1)
	for subject, answer := range map[string]func(*nats.Msg) string{
		"challenge": func(m *nats.Msg) string {
			nonce, err := door.Challenge(string(m.Data))
			verdicts <- err
			return nonce
		},
		"join": func(m *nats.Msg) string {
			j, err := admission.Decode(m.Data)
			if err == nil {
				err = door.Admit(j)
			}
			verdicts <- err
			return ""
		},
	} {
		must.Get(coordinator.Subscribe(Subjects+"s1.door.*."+subject, func(m *nats.Msg) { _ = m.Respond([]byte(answer(m))) }))(t)
	}
	must.Do(t, coordinator.Flush())
	agent, id := known(t, a)
	ask := func(subject string, b []byte) (string, error) {
		t.Helper()
		m := must.Get(agent.Request(Subjects+"s1.door."+id+"."+subject, b, time.Minute))(t)
		return string(m.Data), <-verdicts
	}
	b := stand(t, a)
	fresh := func(version string) []byte {
		t.Helper()
		nonce := must.Get(ask("challenge", []byte("agent-1")))(t)
		j := admission.Request{Agent: "agent-1", Version: version, Nonce: nonce}
		j.Prove(x)
		return must.Get(j.Encode())(t)
	}
	good := fresh("v1")
	for _, tt := range []struct {
		name    string
		message []byte
		is      error
	}{
		{"in order", good, nil},
		{"replayed", good, admission.ErrReplayed},
		{"of another version", fresh("v2"), admission.ErrVersion},
		{"no JSON", []byte("join me"), admission.ErrMalformed},
		{"empty", nil, admission.ErrMalformed},
		{"of bytes", bytes.Repeat([]byte{0xff}, 1000), admission.ErrMalformed},
		{"too large", bytes.Repeat([]byte("["), admission.RequestSize+1), admission.ErrMalformed},
		{"as large as goes", []byte(strings.Repeat("{\"a\":", MaxPayload/5)), admission.ErrMalformed},
		{"in order again", fresh("v1"), nil},
	} {
		if _, err := ask("join", tt.message); !errors.Is(err, tt.is) {
			t.Errorf("%s: %v; want %v", tt.name, err, tt.is)
		}
	}
	if _, err := ask("challenge", bytes.Repeat([]byte("a"), 1<<20)); !errors.Is(err, admission.ErrMalformed) {
		t.Errorf("a challenge for a long name: %v; want %v", err, admission.ErrMalformed)
	}
	b.undisturbed(t)
}

// leaving is a client that goes while it is asked who it is.
type leaving struct {
	server.ClientAuthentication
	from []net.Addr // as it is asked
}

func (l *leaving) Kind() int                   { return server.CLIENT }
func (l *leaving) GetOpts() *server.ClientOpts { return &server.ClientOpts{Token: "wrong"} }
func (l *leaving) RegisterUser(*server.User)   {}

func (l *leaving) RemoteAddress() net.Addr {
	if len(l.from) == 0 {
		return nil
	}
	a := l.from[0]
	l.from = l.from[1:]
	return a
}

// TestDepartedClientIsNotTheCoordinator: nor does it bring the hub down.
func TestDepartedClientIsNotTheCoordinator(t *testing.T) {
	d := &fleettest.Diary{}
	v := newLogger(d.Log())
	v.loud.Store(true)
	g := &authenticator{keep: fleettest.Keep(t), now: time.Now, said: v, fleetKey: "f", reportsKey: "b"}
	if g.Check(&leaving{}) || d.Lines("was refused") != 0 {
		t.Errorf("one that is gone: %s", d)
	}
	at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	if g.Check(&leaving{from: []net.Addr{at}}) || d.Lines("from=192.0.2.1 port=1") != 1 {
		t.Errorf("one that goes then: %s", d)
	}
}
