package artemis

import (
	"context"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// plain connects without weir.
func plain(t *testing.T, s *served.System) *client.Session {
	t.Helper()
	c := must.Get(client.Dial(t.Context(), "amqp://"+s.Address[0], &client.ConnOptions{SASLType: client.SASLTypePlain("weir", "weir")}))(t)
	t.Cleanup(func() { _ = c.Close() })
	session := must.Get(c.NewSession(t.Context(), nil))(t)
	return session
}

func TestGuaranteeFollowsServerSettings(t *testing.T) {
	journal, memory := shared.Up(t, 1), served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"persistence": "no"}})
	for _, tc := range []struct {
		on   *served.System
		set  []string
		want driver.Confirms
	}{
		{journal, nil, driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}},
		{journal, []string{"datasync", "unknown"}, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		{journal, []string{"durable", "no"}, driver.Confirms{Guarantee: driver.Received}},
		{journal, []string{"confirm", "no"}, driver.Confirms{Guarantee: driver.Written}},
		{memory, nil, driver.Confirms{Guarantee: driver.Received}},
	} {
		f, err := trial.Declared(t, Definition(), tc.on.Options, tc.set...).Facts(t.Context())
		if err != nil || f.Confirms != tc.want || f.Version != "2.56.0" {
			t.Errorf("%v: %+v, %v; want %+v", tc.set, f, err, tc.want)
		}
	}
}

// TestConsumerSurvivesRestartBeforeRun restarts a killed server between opening and running a
// consumer.
func TestConsumerSurvivesRestartBeforeRun(t *testing.T) {
	s := shared.Up(t, 1)
	const n = 50
	c := trial.Declared(t, Definition(), s.Options)
	p, f := trial.Producer(t, c, "d")
	if a := f.Confirmed(t, p, n); a != n {
		t.Fatalf("%d of %d confirmed", a, n)
	}
	early := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleEach}))(t)
	t.Cleanup(func() { _ = early.Close(context.Background()) })
	must.Do(t, s.Kill()())
	l := trial.NewLog()
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- early.Run(running, l) }()
	l.Until(t, "all messages", func() bool { return len(l.Got) >= n })
	stop()
	if err := <-ended; err != nil || len(l.Faults) != 1 {
		t.Errorf("it ended with %v, and told of the faults %v; want nil, and one", err, l.Faults)
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	trial.Refuses(t, Definition(), shared.Up(t, 1).Options,
		trial.Mistake{Name: "a password without a user", Set: []string{"user", "", "password", "wr0ng"}, Option: "password"},
		trial.Mistake{Name: "a wrong password", Set: []string{"password", "wr0ng"}, Is: driver.ErrAuth},
		trial.Mistake{Name: "no user", Set: []string{"user", "", "password", ""}, Is: driver.ErrAuth},
		trial.Mistake{Name: "TLS with a server that has none", Set: []string{"tls.insecure", "yes", "timeout", "1s"}},
	)
}

func TestPageGuaranteesMatchServers(t *testing.T) {
	served.Guarantees(t, Definition(), shared, "",
		"received: confirm: yes, durable: yes, server.persistence: yes, server.sync: yes, datasync: yes",
	)
}

// TestCloseWaitsForPresettledMessages closes a producer while the server is stalled: the
// messages are then in operating system buffers, and would otherwise reach a queue of that name
// even after it was deleted.
func TestCloseWaitsForPresettledMessages(t *testing.T) {
	s := shared.Up(t, 1)
	c := trial.Declared(t, Definition(), s.Options, "durable", "no", "confirm", "no")
	p, f := trial.Producer(t, c, "d")
	resume := trial.Stalled(t, s.Stall)
	if n := f.Confirmed(t, p, 20); n != 20 {
		t.Errorf("%d of 20 sent", n)
	}
	closed := make(chan error, 1)
	go func() { closed <- p.Close(t.Context()) }()
	select {
	case err := <-closed:
		t.Errorf("Close returned before the server had the messages: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	resume()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := trial.Backlog(t, c); n != 20 {
		t.Errorf("the queue has %d of 20 messages when Close has returned, %d soon after", n, trial.Backlog(t, c))
	}
}
