package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestPageGuaranteesMatchServers(t *testing.T) {
	one, three := shared.Up(t, 1), shared.Up(t, 3)
	served.Guarantees(t, Definition(), shared, "")
	t.Run("by AMQP alone", func(t *testing.T) {
		o := options(three)
		delete(o, "management")
		c := open(t, driver.Run{}, o)
		declared(t, c, 3)
		f, err := c.Facts(t.Context())
		want := driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesQuorum, Stable: driver.StableFsync}
		if err != nil || f.Confirms != want || f.Name != "RabbitMQ" || f.Version != "4.0.5" || f.Nodes != 3 {
			t.Errorf("%+v, %v", f, err)
		}
	})
	older := served.Up(t, Definition(), 1, served.With{Recipe: "rabbitmq3"})
	t.Run("a classic queue of which nobody says how it is stored", func(t *testing.T) {
		c := open(t, driver.Run{}, options(older, "management", ""))
		declared(t, c, 1)
		f, err := c.Facts(t.Context())
		if want := (driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}); err != nil || f.Confirms != want {
			t.Errorf("%+v, %v", f.Confirms, err)
		}
	})
	t.Run("a classic queue of which the plugin says how it is stored", func(t *testing.T) {
		c := open(t, driver.Run{}, options(older))
		declared(t, c, 1)
		f, err := c.Facts(t.Context())
		if err != nil || f.Confirms.Guarantee != driver.Persisted || f.Settings["x-queue-version"] != "1" {
			t.Errorf("%+v, %v", f, err)
		}
	})
	t.Run("a cluster of RabbitMQ 3", func(t *testing.T) {
		c := open(t, driver.Run{}, options(served.Up(t, Definition(), 3, served.With{Recipe: "rabbitmq3"})))
		declared(t, c, 3)
		f, err := c.Facts(t.Context())
		want := driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesQuorum, Stable: driver.StableFsync}
		if err != nil || f.Confirms != want || f.Nodes != 3 || !strings.HasPrefix(f.Version, "3.") {
			t.Errorf("%+v, %v", f, err)
		}
	})
	t.Run("replicas that there are no nodes for", func(t *testing.T) {
		d := driver.Destination{Name: "many", Partitions: 1, Replicas: 3}
		for _, o := range []map[string][]string{options(one), options(one, "management", ""), options(three, "queue", classic)} {
			c := open(t, driver.Run{}, o)
			if err := c.Declare(t.Context(), d); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "3 replicas") {
				t.Errorf("%v", err)
			}
		}
	})
}

func mustPlace(t testing.TB, c *conn, destination string) place {
	t.Helper()
	p := must.Get(c.place(destination))(t)
	return p
}

func TestExistingQueues(t *testing.T) {
	s := shared.Up(t, 1)
	admin := open(t, driver.Run{}, s.Options)
	by(t, admin, func(ch *client.Channel) error {
		_, err := ch.QueueDeclare("classic", true, false, false, false, client.Table{"x-queue-type": "classic"})
		_, err2 := ch.QueueDeclare("untyped", false, false, false, false, nil)
		_, err3 := ch.QueueDeclare("quorum", true, false, false, false, client.Table{"x-queue-type": "quorum"})
		return errors.Join(err, err2, err3)
	})
	for _, manage := range []bool{true, false} {
		for queue, want := range map[string]driver.Confirms{
			"classic": {Guarantee: driver.Received, Stable: driver.StableOS}, "untyped": {Guarantee: driver.Received},
			"quorum": {Guarantee: driver.Persisted, Stable: driver.StableFsync},
		} {
			o := options(s)
			if !manage {
				delete(o, "management")
			}
			l := trial.NewLog()
			c := open(t, driver.Run{Existing: true}, o)
			p := producerOf(t, c, l, queue)
			stop := l.Consume(t, c, driver.ConsumerSpec{Destinations: []string{queue}})
			if err := l.Publish(t, p, queue, "hello"); err != nil {
				t.Error(err)
			}
			l.Until(t, "the message", func() bool { return len(l.Got) == 1 })
			stop()
			f, err := c.Facts(t.Context())
			if err != nil || f.Confirms != want {
				t.Errorf("%s, management %v: %+v, %v", queue, manage, f, err)
			}
			trial.NoConsumer(t, c, driver.ConsumerSpec{Subscription: "t", Destinations: []string{queue}}, "a second subscription of a queue", driver.ErrUnsupported, "one subscription, which is s")
		}
	}
	c := open(t, driver.Run{Existing: true}, s.Options)
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"nosuch"}}, "a queue that is not there", driver.ErrUnsupported, "404 NOT_FOUND - no queue 'nosuch'")
	trial.NoConsumer(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"nosuch"}}, "a queue that is not there", driver.ErrUnsupported, "")
	trial.NoConsumer(t, c, driver.ConsumerSpec{Subscription: "mine", Durable: true, Destinations: []string{"classic"}}, "a durable subscription of a queue under another name", driver.ErrUnsupported, "the queue itself")
}

func TestExistingExchanges(t *testing.T) {
	s := shared.Up(t, 1)
	o := options(s, "existing", areExchanges, "exchange", direct, "routing-key", "k")
	admin := open(t, driver.Run{}, s.Options)
	by(t, admin, func(ch *client.Channel) error {
		_, err := ch.QueueDeclare("taken", false, false, false, false, nil)
		return errors.Join(err, ch.ExchangeDeclare("x", direct, true, false, false, false, nil))
	})
	l := trial.NewLog()
	c := open(t, driver.Run{Existing: true}, o)
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"nosuch"}}, "an exchange that is not there", driver.ErrUnsupported, "no exchange 'nosuch'")
	p := producerOf(t, c, l, "x")
	if err := l.Publish(t, p, "x", "to nobody"); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "no queue took it (basic.return, 312)") {
		t.Errorf("a message that no queue takes: %v", err)
	}
	durable := driver.ConsumerSpec{Subscription: "mine", Durable: true, Destinations: []string{"x"}}
	l.Consume(t, c, durable)() // creates the queue
	passing := trial.NewLog()
	stop := passing.Consume(t, c, driver.ConsumerSpec{Subscription: "passing", Destinations: []string{"x"}})
	if err := l.Publish(t, p, "x", "kept"); err != nil {
		t.Error(err)
	}
	passing.Until(t, "the message", func() bool { return len(passing.Got) == 1 })
	stop()
	of := c.subscriptionQueue("passing", "x", false)
	if n, err := c.Backlog(t.Context(), "mine", []string{"x"}); err != nil || n != 1 {
		t.Errorf("a backlog of %d, %v; want 1", n, err)
	}
	trial.NoConsumer(t, c, driver.ConsumerSpec{Subscription: "taken", Durable: true, Destinations: []string{"x"}}, "a durable subscription whose name is another queue's", driver.ErrUnsupported, "406 PRECONDITION_FAILED")
	if err := errors.Join(p.Close(context.Background()), c.Close(context.Background())); err != nil {
		t.Error(err)
	}
	err := admin.ask(t.Context(), func(ch *client.Channel) error {
		_, err := ch.QueueDeclarePassive(of, true, false, false, false, nil)
		return err
	})
	if !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("the queue of a subscription that was not durable is still there: %v", err)
	}
	again := trial.NewLog()
	again.Consume(t, open(t, driver.Run{Existing: true}, o), durable)
	again.Until(t, "what the durable subscription kept", func() bool { return len(again.Got) == 1 && again.Got[0] == "kept" })
}

// TestAnotherProcessUsesDeclaredTopology: a Conn without knowledge of the replicas creates the
// subscriptions' queues, and a confirmation means what the weakest of them provides.
func TestAnotherProcessUsesDeclaredTopology(t *testing.T) {
	s := shared.Up(t, 1)
	for _, manage := range []bool{true, false} {
		run := driver.Run{ID: fmt.Sprint("managed-", manage)}
		here := open(t, run, options(s, "queue", "quorum"))
		declared(t, here, 1)
		o := options(s)
		if !manage {
			delete(o, "management")
		}
		there := open(t, run, o)
		x := must.Get(there.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}))(t)
		defer x.Close(t.Context())
		q := x.(*consumer).queues[0]
		if k := here.inspect(t.Context(), q); k.kind != quorum || k.replicas != 1 {
			t.Errorf("management %v: the subscription has a queue of %+v; want quorum, as its destination", manage, k)
		}
		if f, err := there.Facts(t.Context()); err != nil || f.Confirms.Guarantee != driver.Persisted {
			t.Errorf("management %v: %+v, %v", manage, f.Confirms, err)
		}
	}
}
