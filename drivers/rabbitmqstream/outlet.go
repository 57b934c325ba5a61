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

// perMessage is the most bytes of a frame besides one of several messages.
const perMessage = 40

// A slot is a message for the client: one AMQP 1.0 data section. It is kept in Message.Slot.
type slot struct {
	message.StreamMessage // nil: the client uses only the methods below
	m                     *driver.Message
	bytes                 []byte
	id                    int64 // publishing ID
	before, after         *slot // in the ring of messages in flight
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

// A link is one connection to a stream's leader, with a client producer.
type link struct {
	env      *stream.Environment
	producer *stream.Producer
	closed   stream.ChannelClose
	heard    chan struct{} // closed when the client has reported everything
}

// An outlet sends a producer's messages for one stream, on its own goroutine, because a client call
// waits for the socket. Messages that gather meanwhile are sent in one call.
type outlet struct {
	p         *producer
	stream    string
	reference string // of a named producer; "": unnamed
	most      int    // bytes of a frame
	wake      chan struct{}
	batch     []message.StreamMessage // used only by the goroutine
	ids       int64                   // the last publishing ID; used only by the goroutine

	mu     sync.Mutex
	queue  []*slot // limited by the engine to the messages in flight
	spare  []*slot
	flight slot  // head of the ring of messages in flight, in order
	over   error // why nothing more is accepted

	confirmed uint64
}

func newOutlet(p *producer, to string, most int) *outlet {
	o := &outlet{p: p, stream: to, most: most, wake: make(chan struct{}, 1)}
	o.flight.before, o.flight.after = &o.flight, &o.flight
	return o
}

// add adds messages with slots, which are sent together if a frame has room. It does not wait.
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

// connect opens a client producer, within ctx.
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
		o.ids = 0 // the client numbers messages from 1
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

// watch reports when a server in an alarm stops reading from producers' connections: it does not
// announce that, but refuses further producers.
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

// keep sends until life ends, and reconnects when necessary.
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

// send sends the waiting messages, one frame per call. Errors appear as confirmations, or as the
// end of the connection.
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

// hear handles confirmations. The client reports those of a lost connection as timed out, which
// lost handles.
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

// settle completes a message once: the client may report an entry's message twice.
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
		o.p.Complete(s.m, refusal(status.GetError()))
	}
}

// land removes a slot from the messages in flight. The outlet's mu is held.
func (s *slot) land() {
	s.before.after, s.after.before = s.after, s.before
	s.before, s.after, s.flying, s.id = nil, nil, false, 0
}

// lost completes messages in flight as disconnected, or queues them to be sent again.
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

// fail completes all waiting messages, and all later ones, with err.
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
