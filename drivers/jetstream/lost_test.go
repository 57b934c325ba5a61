package jetstream

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/internal/natsd"
)

// A loser is a consumer of the client that sends no pull request the first time.
type loser struct {
	jetstream.Consumer
	begun int
}

func (l *loser) Consume(h jetstream.MessageHandler, o ...jetstream.PullConsumeOpt) (jetstream.ConsumeContext, error) {
	if l.begun++; l.begun == 1 {
		return nothing{}, nil
	}
	return l.Consumer.Consume(h, o...)
}

// nothing is a pull that sends no request.
type nothing struct{}

func (nothing) Stop()  {}
func (nothing) Drain() {}
func (nothing) Closed() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}

// TestAPullRequestThatIsLostIsSentAgain: in a cluster one may come to a server that leads the
// durable and does not take requests yet. No answer tells.
func TestAPullRequestThatIsLostIsSentAgain(t *testing.T) {
	s := natstest.Start(t, natsd.Options{Nodes: 3})
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: 3}
	c := open(t, s, nil, d)
	x, err := driver.Inside(c).Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleEach})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close(context.Background()) }()
	durable := x.(*consumer).durables[0]
	lost := &loser{Consumer: durable.Consumer}
	durable.Consumer = lost
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k := &readiness{ready: cancel}
	if err := x.Run(ctx, k); err != nil || !k.was || lost.begun != 2 {
		t.Errorf("ready: %v, begun %d times, %v; want true, 2 times", k.was, lost.begun, err)
	}
}

// A readiness is a sink that ends its consumer when it is ready.
type readiness struct {
	ready func()
	was   bool
}

func (r *readiness) Ready()                           { r.was = true; r.ready() }
func (r *readiness) Deliver([]driver.Delivery) error  { return nil }
func (r *readiness) Settled([]driver.Delivery, error) {}
func (r *readiness) Fault(error)                      {}
