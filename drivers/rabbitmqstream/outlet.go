package rabbitmqstream

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/drivers/internal/standstill"
)

// perMessage is most bytes of a frame around one message of several.
const perMessage = 40

// A slot is a message as the client takes it: one section of data in AMQP 1.0. It is kept
// in Message.Slot.
type slot struct {
	message.StreamMessage // nil: the client asks for what is below only
	m                     *driver.Message
	bytes                 []byte
	id                    int64 // publishing ID
	before, after         *slot // in flight
	flying                bool
}

func slotOf(m *driver.Message) *slot {
	s, ok := m.Slot.(*slot)
	if !ok {
		s = &slot{}
		m.Slot = s
	}
	s.m = m
	s.bytes = append(s.bytes[:0], 0x00, 0x53, 0x75, 0xb0) // described, data, binary of 32 bits
	s.bytes = binary.BigEndian.AppendUint32(s.bytes, uint32(len(m.Payload)))
	s.bytes = append(s.bytes, m.Payload...)
	return s
}

// MarshalBinary returns the bytes, which the client writes within the call.
func (s *slot) MarshalBinary() ([]byte, error) { return s.bytes, nil }

func (s *slot) HasPublishingId() bool { return true }

func (s *slot) GetPublishingId() int64 { return s.id }

func (s *slot) GetMessageProperties() *amqp.MessageProperties { return nil }

// A link is one connection to the leader of a stream, with a producer of the client's.
type link struct {
	env      *stream.Environment
	producer *stream.Producer
	closed   stream.ChannelClose
	heard    chan struct{} // closed when the client will tell no more
}

// An outlet sends the messages of a producer for one stream, on a goroutine of its own: a
// call of the client waits for the socket. What gathers meanwhile leaves in one call.
type outlet struct {
	p         *producer
	stream    string
	reference string // of a producer with a name; "": without
	most      int    // bytes of a frame
	wake      chan struct{}
	batch     []message.StreamMessage // touched by the goroutine only
	ids       int64                   // the last publishing ID; touched by the goroutine only

	mu     sync.Mutex
	queue  []*slot // the engine bounds it: not more messages than may be in flight
	spare  []*slot
	flight slot  // begins and ends the ring of what is in flight, in order
	over   error // why nothing is taken any more

	confirmed uint64
}

func newOutlet(p *producer, to string, most int) *outlet {
	o := &outlet{p: p, stream: to, most: most, wake: make(chan struct{}, 1)}
	o.flight.before, o.flight.after = &o.flight, &o.flight
	return o
}

// add takes messages with slots, which leave together where a frame has room. It does not
// wait.
func (o *outlet) add(ms ...*driver.Message) {
	o.mu.Lock()
	over := o.over
	for _, m := range ms {
		if over == nil {
			o.queue = append(o.queue, m.Slot.(*slot))
		}
	}
	o.mu.Unlock()
	if over != nil {
		for _, m := range ms {
			o.p.Complete(m, over)
		}
		return
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// connect opens a producer of the client's, within ctx.
func (o *outlet) connect(ctx context.Context) (*link, error) {
	l := &link{heard: make(chan struct{})}
	cfg := &o.p.conn.cfg
	var confirmed stream.ChannelPublishConfirm
	var err error
	l.env, err = o.p.conn.environment(ctx, o.p.index, func(env *stream.Environment) (err error) {
		options := stream.NewProducerOptions().SetQueueSize(o.p.room).SetSubEntrySize(cfg.SubEntry).
			SetCompression(compression(cfg.Compression)).SetConfirmationTimeOut(cfg.ConfirmTimeout).
			SetClientProvidedName("weir " + o.p.conn.run.ID + " " + o.p.name)
		if o.reference != "" {
			options.SetProducerName(o.reference)
		}
		if l.producer, err = env.NewProducer(o.stream, options); err != nil {
			return alarmed(err)
		}
		l.closed, confirmed = l.producer.NotifyClose(), l.producer.NotifyPublishConfirmation()
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.SubEntry > 1:
		o.ids = 0 // the client numbers messages from 1 on
	case o.reference != "" && o.ids == 0:
		if o.ids, err = l.producer.GetLastPublishingId(); err != nil {
			o.ids = 0
		}
	}
	go func() {
		defer close(l.heard)
		for statuses := range confirmed {
			o.hear(l, statuses)
		}
	}()
	return l, nil
}

func alarmed(err error) error {
	if errors.Is(err, stream.PreconditionFailed) {
		return errAlarm
	}
	return err
}

// watch reports when a server in an alarm reads nothing more from the connections of
// producers: it does not say so, and refuses further producers.
func (o *outlet) watch(life context.Context) {
	(&standstill.Watch{
		Run: o.p.conn.run, Who: o.p.name + " to " + o.stream,
		Look: func() (uint64, bool) {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.confirmed, o.flight.after != &o.flight
		},
		Why: func(ctx context.Context) string {
			env, err := o.p.conn.environment(ctx, o.p.index, func(env *stream.Environment) error {
				p, err := env.NewProducer(o.stream, stream.NewProducerOptions().SetClientProvidedName("weir "+o.p.conn.run.ID+" question"))
				if err == nil {
					err = p.Close()
				}
				return alarmed(err)
			})
			if err == nil {
				_ = env.Close()
			}
			if errors.Is(err, errAlarm) {
				return errAlarm.Error()
			}
			return ""
		},
	}).Keep(life)
}

// keep sends until life ends, and connects again where it must.
func (o *outlet) keep(life context.Context, l *link) {
	cfg := &o.p.conn.cfg
	k := retry.Connection[link]{
		Connect: o.connect, Hold: o.hold, Wait: cfg.ReconnectWait, For: cfg.ReconnectFor,
		Final: func(err error) bool { return errors.Is(err, driver.ErrAuth) },
		Made: func(_, now *link, _ error) {
			o.p.conn.run.Tell(driver.Reconnect, o.p.name+": "+now.producer.GetBroker().Host+":"+now.producer.GetBroker().Port)
		},
	}
	if err := k.Keep(life, l); err != nil {
		o.fail(err)
	}
}

// hold sends on one connection until it is lost or ctx ends.
func (o *outlet) hold(ctx context.Context, l *link) error {
	defer end(func() {
		_ = l.producer.Close()
		_ = l.env.Close()
		<-l.heard
	})
	for {
		o.send(l)
		select {
		case <-o.wake:
		case <-l.heard:
			o.lost()
			return driver.ErrDisconnected
		case <-ctx.Done():
			return nil
		}
	}
}

// send sends what waits, in calls of one frame each. Errors come as confirmations, or as
// the end of the connection.
func (o *outlet) send(l *link) {
	o.mu.Lock()
	taken := o.queue
	o.queue, o.spare = o.spare[:0], nil
	for _, s := range taken {
		s.flying, s.before, s.after = true, o.flight.before, &o.flight
		s.before.after, o.flight.before = s, s
		if s.id == 0 || o.reference == "" {
			o.ids++
			s.id = o.ids
		}
	}
	o.mu.Unlock()
	size := 0
	for i, s := range taken {
		o.batch = append(o.batch, s)
		size += len(s.bytes) + perMessage
		if i == len(taken)-1 || size+len(taken[i+1].bytes)+perMessage > o.most-overhead {
			_ = l.producer.BatchSend(o.batch)
			o.batch, size = o.batch[:0], 0
		}
	}
	o.mu.Lock()
	o.spare = taken[:0]
	o.mu.Unlock()
}

// hear takes confirmations. The client tells of those of a lost connection as timed out:
// lost sees to them.
func (o *outlet) hear(l *link, statuses []*stream.ConfirmationStatus) {
	for _, s := range statuses {
		if !s.IsConfirmed() && len(l.closed) > 0 {
			return
		}
		o.settle(s)
		for _, linked := range s.LinkedMessages() {
			o.settle(linked)
		}
	}
}

// settle completes a message, once: the client may tell of one of an entry twice.
func (o *outlet) settle(status *stream.ConfirmationStatus) {
	s, ok := status.GetMessage().(*slot)
	if !ok {
		return
	}
	o.mu.Lock()
	found := s.flying && s.id == status.GetPublishingId()
	if found {
		s.land()
		if status.IsConfirmed() {
			o.confirmed++
		}
	}
	o.mu.Unlock()
	if !found {
		return
	}
	if status.IsConfirmed() {
		o.p.Complete(s.m, nil)
	} else {
		o.p.Complete(s.m, told(status.GetError()))
	}
}

// land takes a slot out of flight. The outlet's mu is held.
func (s *slot) land() {
	s.before.after, s.after.before = s.after, s.before
	s.before, s.after, s.flying, s.id = nil, nil, false, 0
}

// lost says of what was in flight that its connection was lost, or has it sent again.
func (o *outlet) lost() {
	again := o.reference != ""
	o.mu.Lock()
	var flown []*slot
	for s := o.flight.after; s != &o.flight; s = o.flight.after {
		id := s.id
		s.land()
		if again {
			s.id = id
		}
		flown = append(flown, s)
	}
	if again {
		o.queue = append(flown, o.queue...)
	}
	o.mu.Unlock()
	if again {
		return
	}
	for _, s := range flown {
		o.p.Complete(s.m, driver.ErrDisconnected)
	}
}

// fail completes all that waits, and from now on all that comes, with err.
func (o *outlet) fail(err error) {
	o.mu.Lock()
	o.over = err
	left := o.queue
	o.queue = nil
	var flown []*slot
	for s := o.flight.after; s != &o.flight; s = o.flight.after {
		s.land()
		flown = append(flown, s)
	}
	o.mu.Unlock()
	for _, s := range left {
		s.id = 0
		o.p.Complete(s.m, err)
	}
	for _, s := range flown {
		o.p.Complete(s.m, errors.Join(err, driver.ErrAbandoned))
	}
}
