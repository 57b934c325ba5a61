package rabbitmq

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/rabbitserver"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func sentTo(done driver.Completer, n int) *outlet {
	o := newOutlet(&producer{Outgoing: blocking.NewOutgoing(done), conn: &conn{cfg: *newConfig()}})
	o.next = uint64(n) + 1
	for tag := uint64(1); tag < o.next; tag++ {
		o.sent[tag] = &driver.Message{}
	}
	return o
}

func TestConfirmOfUnsentMessageIsIgnored(t *testing.T) {
	l := trial.NewLog()
	o := sentTo(l, 3)
	o.confirmed(4, false, true)
	o.confirmed(1<<60, true, true)
	o.confirmed(0, false, true)
	if len(l.Errs) != 0 || len(o.sent) != 3 {
		t.Errorf("completed %v, %d of 3 messages are under way", l.Errs, len(o.sent))
	}
	o.confirmed(3, true, true)
	if len(l.Errs) != 3 {
		t.Errorf("completed %v; want all three", l.Errs)
	}
}

// TestConfirmsOneByOneAdvanceLowMark: a scan of messages in flight starts with the first of them,
// not the first ever sent.
func TestConfirmsOneByOneAdvanceLowMark(t *testing.T) {
	l := trial.NewLog()
	o := sentTo(l, 100)
	for tag := uint64(99); tag > 0; tag-- {
		o.confirmed(tag, false, true)
	}
	if o.low != 100 || len(l.Errs) != 99 {
		t.Errorf("the lowest that may be under way is %d, %d are completed", o.low, len(l.Errs))
	}
}

// TestUnwrittenMessageIsNotCompleted publishes on a connection that has just broken, after
// everything before was written.
func TestUnwrittenMessageIsNotCompleted(t *testing.T) {
	s := shared.Up(t, 1)
	l := trial.NewLog()
	c := open(t, driver.Run{}, options(s, "confirm", "no"))
	declared(t, c, 1)
	p := producerOf(t, c, l, "d")
	must.Do(t, l.Publish(t, p, "d", "first"))
	o := p.now.Now()
	o.kill()
	if err := l.Publish(t, p, "d", "second"); err == nil && p.now.Now() == o {
		t.Error("completed as written")
	}
}

// TestConsumerClosedWithoutServerReturnsError ends it during its last delivery, which the server
// can no longer learn about.
func TestConsumerClosedWithoutServerReturnsError(t *testing.T) {
	s := shared.Up(t, 1)
	l := trial.NewLog()
	c := open(t, driver.Run{}, options(s))
	declared(t, c, 1)
	p := producerOf(t, c, l, "d")
	held, release := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(held) })
	l.OnDeliver = func([]driver.Delivery) error {
		once()
		<-release
		return nil
	}
	x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, l) }()
	must.Do(t, l.Publish(t, p, "d", "last"))
	<-held
	trial.Must(t, s.KillAndRestart)
	cancel()
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	l.Lock()
	defer l.Unlock()
	if !slices.ContainsFunc(l.Faults, func(err error) bool { return errors.Is(err, driver.ErrDisconnected) }) {
		t.Errorf("faults %v; want that the last settlement is not known to have come", l.Faults)
	}
}

func TestTheOldestNodeDecides(t *testing.T) {
	var links []*link
	for _, v := range []string{"3.13.7", "3.12.14", "4.0.5"} {
		links = append(links, &link{Connection: &client.Connection{Properties: client.Table{"version": v}}})
	}
	c := &conn{cfg: *newConfig()}
	if err := c.check(links); err != nil || c.release != (rabbitserver.Version{3, 12}) {
		t.Errorf("release %v, %v; want 3.12", c.release, err)
	}
}

// TestDeliveryAfterSessionEndIsNotCounted reports a delivery after the end of its session, which
// nobody would ever settle.
func TestDeliveryAfterSessionEndIsNotCounted(t *testing.T) {
	c := &conn{}
	s := &session{consumer: &consumer{conn: c}}
	c.sessions.Note(s, "s")
	for range 3 {
		s.delivered()
	}
	s.count(1)
	if n := c.held("s"); n != 2 {
		t.Errorf("%d are held, want 2", n)
	}
	c.sessions.Forget(s)
	s.delivered()
	if n := c.held("s"); n != 0 {
		t.Errorf("%d are held when the session is over", n)
	}
}
