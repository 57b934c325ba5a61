package hub

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
)

// existing starts a server that is not a hub.
func existing(t *testing.T, change func(*server.Options)) string {
	t.Helper()
	return natsdtest.Start(t, change).Addr().String()
}

func TestExistingServers(t *testing.T) {
	k := fleettest.Keep(t)
	user := existing(t, func(o *server.Options) { o.Username, o.Password = "alice", "b@:/" })
	token := existing(t, func(o *server.Options) { o.Authorization = "s3cret" })
	open := existing(t, func(*server.Options) {})
	secure := existing(t, func(o *server.Options) { o.TLS, o.TLSConfig = true, k.TLS() })
	hub, joining := begin(t, Options{Keep: k}).Addr(), k.Own(admission.Address{}).Token.Reveal()
	for _, tt := range []struct {
		name, url string
		is        error
	}{
		{"user and password", "nats://alice:b%40%3A%2F@" + user, nil},
		{"a wrong password", "nats://alice:x@" + user, driver.ErrAuth},
		{"no user", "nats://" + user, driver.ErrAuth},
		{"its token", "nats://s3cret@" + token, nil},
		{"another token", "nats://s4cret@" + token, driver.ErrAuth},
		{"open", "nats://" + open, nil},
		{"TLS by fingerprint", "tls://" + secure + "?pin=" + k.Pin().String(), nil},
		{"TLS by another fingerprint", "tls://" + secure + "?pin=" + fleettest.Keep(t).Pin().String(), admission.ErrPin},
		{"TLS that no authority knows", "tls://" + secure, admission.ErrPin},
		{"TLS that no authority knows, which the server asks for", "nats://" + secure, admission.ErrPin},
		{"TLS that is not there", "tls://" + open, admission.ErrScheme},
		{"TLS by fingerprint that is not there", "tls://" + open + "?pin=" + k.Pin().String(), admission.ErrScheme},
		{"a hub's TLS that is not there", "weir://" + open + "?pin=" + k.Pin().String() + "&token=" + joining, admission.ErrScheme},
		{"a hub, without TLS", "nats://" + hub, admission.ErrScheme},
		{"a hub by the TLS of a server", "tls://" + hub + "?pin=" + k.Pin().String(), admission.ErrScheme},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := must.Get(admission.Parse(tt.url))(t)
			nc, err := Dial(t.Context(), a, self(t), "agent-1", nil)
			if err == nil {
				defer nc.Close()
				err = nc.FlushTimeout(time.Minute)
			}
			if !errors.Is(err, tt.is) {
				t.Errorf("Dial: %v; want %v", err, tt.is)
			}
		})
	}
}

// A full server says so and closes the connection at once: a client about to write may only see the close.
func TestAFullServer(t *testing.T) {
	a := admission.Address{Scheme: admission.SchemeNATS, Host: existing(t, func(o *server.Options) { o.MaxConn = -1 })}
	if _, err := Dial(t.Context(), a, self(t), "agent-1", nil); !errors.Is(err, driver.ErrOverloaded) && !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("Dial: %v; want %v, or %v", err, driver.ErrOverloaded, driver.ErrUnreachable)
	}
}

func TestPausesGrowToABoundAndDiffer(t *testing.T) {
	seen := map[time.Duration]bool{}
	for attempt := range 100 {
		d := pause(attempt)
		if d < reconnectFirst/2 || d >= reconnectMost || attempt < 2 && d >= reconnectFirst || attempt > 5 && d < reconnectMost/2 {
			t.Errorf("attempt %d comes after %v", attempt, d)
		}
		seen[d] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d pauses of 100 differ", len(seen))
	}
}
