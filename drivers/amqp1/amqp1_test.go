package amqp1

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// destination is the queue of the tests.
var destination = trial.Plain("d")

// TestGuaranteeFollowsStatedAndReadSettings: a virtual host in memory stores nothing durably,
// regardless of the option store.
func TestGuaranteeFollowsStatedAndReadSettings(t *testing.T) {
	files, memory := shared.Up(t, 1), served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"persistence": "no"}})
	for _, tc := range []struct {
		on   *served.System
		set  []string
		want driver.Confirms
	}{
		{files, nil, driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}},
		{files, []string{"store", "written"}, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		{files, []string{"store", "unknown"}, driver.Confirms{Guarantee: driver.Received}},
		{files, []string{"durable", "no"}, driver.Confirms{Guarantee: driver.Received}},
		{files, []string{"confirm", "no"}, driver.Confirms{Guarantee: driver.Written}},
		{memory, nil, driver.Confirms{Guarantee: driver.Received}},
		{memory, []string{"store", "synced"}, driver.Confirms{Guarantee: driver.Received}},
	} {
		f, err := trial.Declared(t, Definition(), tc.on.Options, tc.set...).Facts(t.Context())
		if err != nil || f.Confirms != tc.want || f.Version != "10.1.0" || f.Name != "Apache Qpid Broker-J Core" {
			t.Errorf("%v: %+v, %v; want %+v", tc.set, f, err, tc.want)
		}
	}
}

// TestWithoutManagementItOnlySends uses a queue created by the user: another Conn counts its
// messages, and Delete removes them.
func TestWithoutManagementItOnlySends(t *testing.T) {
	s := shared.Up(t, 1)
	owner := must.Get(trial.Open(t, Definition(), driver.Run{ID: "owner"}, s.Options))(t)
	trial.Declare(t, owner, destination)
	t.Cleanup(func() { _ = owner.Delete(context.Background(), destination); _ = owner.Close(context.Background()) })
	const queue = "weir.owner.d"
	c := trial.Opened(t, Definition(), driver.Run{Existing: true}, s.Options, "management", "none")
	f := make(trial.Fates, 1)
	p := trial.Produce(t, c, f, queue)
	p.Publish(t.Context(), &driver.Message{Destination: queue})
	if err := errors.Join(f.Next(t), p.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if n := trial.Backlog(t, owner); n != 1 {
		t.Errorf("%d messages", n)
	}
	same := trial.Opened(t, Definition(), driver.Run{ID: "owner"}, s.Options, "management", "none")
	if err := same.Delete(t.Context(), destination, driver.Destination{Name: "missing"}); err != nil {
		t.Error(err)
	}
	if n := trial.Backlog(t, owner); n != 0 {
		t.Errorf("%d messages of a queue that was emptied", n)
	}
	_, missing := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"missing"}}, nil)
	_, consumer := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{queue}})
	for _, err := range []error{missing, consumer} {
		if !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("a queue that is missing, a consumer without management: %v", err)
		}
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	trial.Refuses(t, Definition(), shared.Up(t, 1).Options,
		trial.Mistake{Name: "a password without a user", Set: []string{"user", "", "password", "wr0ng"}, Option: "password"},
		trial.Mistake{Name: "a wrong password", Set: []string{"password", "wr0ng"}, Is: driver.ErrAuth},
	)
}

// TestRabbitMQGuaranteeIsRead: facts describe the existing queue, and a server other than RabbitMQ
// is rejected.
func TestRabbitMQGuaranteeIsRead(t *testing.T) {
	s := shared.Up(t, 1, served.With{Recipe: "rabbitmq"})
	for kind, want := range map[string]driver.Confirms{
		quorum:  {Guarantee: driver.Persisted, Stable: driver.StableFsync},
		classic: {Guarantee: driver.Received, Stable: driver.StableOS},
	} {
		f, err := trial.Declared(t, Definition(), s.Options, "queue-type", kind).Facts(t.Context())
		if err != nil || f.Confirms != want || f.Name != "RabbitMQ" || f.Version != "4.0.5" || f.Settings["queue-type"] != kind {
			t.Errorf("%s: %+v, %v; want %+v", kind, f, err, want)
		}
	}
	c := trial.Opened(t, Definition(), driver.Run{}, s.Options)
	if err := c.Declare(t.Context(), driver.Destination{Name: "d", Partitions: 1, Replicas: 2}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("two replicas on one node: %v", err)
	}
	if _, err := c.(driver.Backlogger).Backlog(t.Context(), "s", []string{"d"}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("the backlog of a queue that was not made: %v", err)
	}
	_, err := trial.Open(t, Definition(), driver.Run{}, shared.Up(t, 1).Options, "management", rabbit4)
	if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "management: rabbitmq is for RabbitMQ 4") {
		t.Errorf("Qpid as RabbitMQ: %v", err)
	}
}

func TestPageGuaranteesMatchServers(t *testing.T) {
	served.Guarantees(t, Definition(), shared, "",
		"received: confirm: yes, management: qpid or none, durable: yes, store: written",
	)
}
