package eventstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A standInConfig marks the server as simulated in its facts, which the test record contains. The
// client accepts only a number from a server.
type standInConfig struct{ Config }

func (c *standInConfig) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	x, err := c.Config.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	return standInConn{x.(*conn)}, nil
}

type standInConn struct{ *conn }

func (c standInConn) Facts(ctx context.Context) (driver.Facts, error) {
	f, err := c.conn.Facts(ctx)
	f.Version = "stand-in"
	return f, err
}

// The suite runs against a simulated server: no package registry offers a real one.
func TestConformance(t *testing.T) {
	s := newFakeServer(t)
	def := Definition()
	def.New = func() driver.Config { return &standInConfig{*Definition().New().(*Config)} }
	drivertest.Run(t, def, drivertest.Harness{
		Options: map[string][]string{"address": {s.Address}},
		Quiet:   100 * time.Millisecond, Cut: s.Cut, Stall: s.Stall, Expect: 30,
	})
}

func TestGuaranteeIsStatedByUser(t *testing.T) {
	s := newFakeServer(t)
	for flushes, want := range map[string]driver.Confirms{
		"no":  {Guarantee: driver.Received},
		"yes": {Guarantee: driver.Persisted, Stable: driver.StableFsync},
	} {
		f, err := trial.Declared(t, Definition(), nil, "address", s.Address, "flushes", flushes).Facts(t.Context())
		if err != nil || f.Confirms != want || f.Nodes != 1 {
			t.Errorf("flushes %s: %+v, %v", flushes, f, err)
		}
	}
}

// TestServerErrorKeepsConnection uses a stream that the user may not write to.
func TestServerErrorKeepsConnection(t *testing.T) {
	s := newFakeServer(t)
	c := trial.Opened(t, Definition(), driver.Run{Existing: true}, nil, "address", s.Address)
	p, f := trial.Producer(t, c, "denied", "open")
	for _, test := range []struct {
		destination string
		want        error
	}{{"denied", driver.ErrAuth}, {"open", nil}} {
		p.Publish(t.Context(), &driver.Message{Destination: test.destination, Payload: []byte("x")})
		if err := f.Next(t); !errors.Is(err, test.want) {
			t.Errorf("%s: %v; want %v", test.destination, err, test.want)
		}
	}
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"$all"}}, "a stream of the system", driver.ErrUnsupported, "")
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"open"}, Largest: 1 << 20}, "messages of 1 MiB", driver.ErrTooLarge, "")
}

// TestGroupsOfExistingStreamAreDeleted: weir's groups on a user's stream are deleted with the Conn.
func TestGroupsOfExistingStreamAreDeleted(t *testing.T) {
	s := newFakeServer(t)
	c := trial.Opened(t, Definition(), driver.Run{Existing: true}, nil, "address", s.Address)
	x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"orders"}}))(t)
	if len(s.groups) != 1 {
		t.Errorf("%d groups, with a consumer", len(s.groups))
	}
	_ = x.Close(t.Context())
	if err := c.Close(t.Context()); err != nil || len(s.groups) != 0 {
		t.Errorf("%d groups are left, %v", len(s.groups), err)
	}
}

func TestConnectErrors(t *testing.T) {
	for _, test := range []struct{ option, value string }{{"address", ""}, {"address", "tcp://127.0.0.1:1"}, {"user", "admin"}} {
		_, err := trial.Open(t, Definition(), driver.Run{}, nil, test.option, test.value)
		if e := (*driver.OptionError)(nil); !errors.As(err, &e) || e.Name != test.option {
			t.Errorf("%s %q: %v", test.option, test.value, err)
		}
	}
	_, err := trial.Open(t, Definition(), driver.Run{}, nil, "address", trial.Silent(t), "timeout", "3s")
	if !errors.Is(err, driver.ErrUnreachable) || strings.Contains(err.Error(), "panic") {
		t.Errorf("a server that is silent: %v", err)
	}
}
