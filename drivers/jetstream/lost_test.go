package jetstream

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd"
)

// A loser is a client consumer whose first pull request is not sent.
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

// TestLostPullRequestIsResent: in a cluster, a request may reach a server that leads the durable
// but does not accept requests yet. There is no answer.
func TestLostPullRequestIsResent(t *testing.T) {
	s := natstest.Start(t, natsd.Options{Nodes: 3})
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: 3}
	c := open(t, s, nil, d)
	x := must.Get(driver.Inside(c).Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleEach}))(t)
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

// TestClusterMessagesUseUniqueReplySubjects: a new leader repeats the previous leader's last
// confirmation. If another message had the same reply subject, it would count as stored. A single
// server confirms once, so a unique subject per message would only cost time.
func TestClusterMessagesUseUniqueReplySubjects(t *testing.T) {
	for nodes, share := range map[int]bool{1: true, 3: false} {
		s := natstest.Start(t, natsd.Options{Nodes: nodes})
		d := driver.Destination{Name: "d", Partitions: 1, Replicas: nodes}
		c := open(t, s, nil, d)
		eyes := must.Get(nats.Connect(s.Address[0]))(t)
		defer eyes.Close()
		seen := must.Get(eyes.SubscribeSync(natsconn.Subject(inside(c).run, "d")))(t)
		done := &count{make(chan struct{}, 2), make(chan error, 1)}
		p := must.Get(c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 1}, done))(t)
		defer func() { _ = p.Close(context.Background()) }()
		replies := map[string]bool{}
		for heard, sent := 0, 0; heard < 2; sent++ {
			if sent == 30 {
				t.Fatalf("%d nodes: of %d messages the subscription saw %d", nodes, sent, heard)
			}
			done.room <- struct{}{}
			p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("message")})
			must.Do(t, p.Flush(t.Context()))
			for {
				m, err := seen.NextMsg(time.Second)
				if err != nil {
					break // another server did not know of the subscription yet
				}
				if len(m.Data) > 0 { // not the producer's probe
					replies[m.Reply] = true
					heard++
					break
				}
			}
		}
		if got := len(replies) == 1; got != share {
			t.Errorf("%d nodes: two messages had the reply subjects %v; shared: want %v", nodes, replies, share)
		}
	}
}

// A readiness is a sink that ends its consumer once it is ready.
type readiness struct {
	ready func()
	was   bool
}

func (r *readiness) Ready()                           { r.was = true; r.ready() }
func (r *readiness) Deliver([]driver.Delivery) error  { return nil }
func (r *readiness) Settled([]driver.Delivery, error) {}
func (r *readiness) Fault(error)                      {}
