package mqtt

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	"github.com/eclipse/paho.golang/paho/session"
	"github.com/eclipse/paho.golang/paho/session/state"

	"github.com/weirmq/weir/driver"
)

// sessionLife is how long, in seconds, the server keeps a session after its consumer has gone.
const sessionLife = 3600

// five is the client for version 5. It sends messages itself, many in one write. It sits between the
// client and its session, where answers arrive, and gives out all packet identifiers: the session
// keeps nothing that this side sends.
type five struct {
	session.SessionManager // the client's own, for what the server sends
	l                      *line
	client                 *paho.Client
	wire                   *wire
	ack                    packets.Publish

	// Owned by the goroutine that publishes.
	out     []byte            // packets, not sent yet
	unasked []*driver.Message // those of level 0 among them
	lost    error             // why nothing can be sent

	// writing is held while a message's own bytes are written: over then waits. The socket is
	// closed, so the write ends.
	writing sync.Mutex

	mu     sync.Mutex
	last   uint16                                  // identifier
	open   map[uint16]*driver.Message              // in flight, by packet identifier
	asked  map[uint16]chan<- packets.ControlPacket // the client's own requests
	closed bool
}

// copied is the size of payloads from which they are sent from where they are.
const copied = 8 << 10

// sendAt is the size of unsent packets from which they are sent although others follow.
const sendAt = 64 << 10

// five connects with version 5.
func (c *Config) five(ctx context.Context, l *line) error {
	f := &five{
		l: l, SessionManager: l.memory, wire: newWire(l.socket),
		open: map[uint16]*driver.Message{}, asked: map[uint16]chan<- packets.ControlPacket{},
	}
	if l.memory == nil {
		f.SessionManager = state.NewInMemory()
	}
	l.client = f
	f.client = paho.NewClient(paho.ClientConfig{
		Conn: f.wire, Session: f, PacketTimeout: c.Timeout,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){f.take},
		OnServerDisconnect: func(d *paho.Disconnect) {
			l.fail(fmt.Errorf("%w: the server closed it: %w", driver.ErrDisconnected, reason(d.ReasonCode)))
		},
		OnClientError: func(err error) { l.fail(errorMap.Lost(err)) },
	})
	// Mosquitto does not save a session that began with Clean Start. The client ID is new.
	p := &paho.Connect{
		ClientID: l.id, CleanStart: !l.keep, KeepAlive: uint16(c.KeepAlive.Seconds()),
		Username: c.User, UsernameFlag: c.User != "", Password: []byte(c.Password.Reveal()), PasswordFlag: !c.Password.IsZero(),
		Properties: &paho.ConnectProperties{},
	}
	if l.ahead > 0 {
		p.Properties.ReceiveMaximum = &l.ahead
	}
	if l.keep {
		life := uint32(sessionLife)
		p.Properties.SessionExpiryInterval = &life
	}
	a, err := f.client.Connect(ctx, p)
	if a != nil && a.ReasonCode >= refused {
		return reason(a.ReasonCode)
	}
	if err != nil {
		return err
	}
	l.most.inflight = 65535 // the standard's default
	if n := a.Properties.ReceiveMaximum; n != nil {
		l.most.inflight = *n
	}
	if n := a.Properties.MaximumPacketSize; n != nil {
		l.most.packet = *n
	}
	if n := a.Properties.MaximumQoS; n != nil {
		l.most.qos = *n
	}
	return nil
}

// publish implements client.
func (f *five) publish(topic string, qos byte, m *driver.Message) {
	if qos > f.l.most.qos {
		f.l.complete(m, fmt.Errorf("%w: the server's highest QoS is %d", driver.ErrUnsupported, f.l.most.qos))
		return
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		f.l.complete(m, context.Cause(f.l.life))
		return
	}
	var id uint16
	if qos > 0 {
		id = f.identifier()
		f.open[id] = m
	} else {
		f.unasked = append(f.unasked, m)
	}
	f.out = appendPublish(f.out, topic, qos, id, len(m.Payload))
	if len(m.Payload) < copied {
		f.out = append(f.out, m.Payload...) // with the lock: over completes m
		f.mu.Unlock()
		if len(f.out) >= sendAt {
			f.flush()
		}
		return
	}
	f.writing.Lock()
	f.mu.Unlock()
	f.send(m.Payload)
	f.writing.Unlock()
	f.flush()
}

// identifier returns one that is not in use. The window is smaller than their number.
func (f *five) identifier() uint16 {
	for {
		f.last++
		if f.last != 0 && f.open[f.last] == nil && f.asked[f.last] == nil {
			return f.last
		}
	}
}

// send sends the packets that were published, and then the rest of the last one.
func (f *five) send(rest []byte) {
	if err := f.wire.sendAll(f.out, rest); err != nil && f.lost == nil {
		f.lost = err
	}
	f.out = f.out[:0]
}

// flush implements client.
func (f *five) flush() {
	f.send(nil)
	err := f.lost
	if err != nil {
		err = errorMap.Lost(err)
	}
	for i, m := range f.unasked {
		f.unasked[i] = nil
		f.l.complete(m, err)
	}
	f.unasked = f.unasked[:0]
	if err != nil {
		f.l.fail(err)
	}
}

// AddToSession implements session.SessionManager for the client's own requests.
func (f *five) AddToSession(_ context.Context, p session.Packet, answer chan<- packets.ControlPacket) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return session.ErrNoConnection
	}
	id := f.identifier()
	f.asked[id] = answer
	p.SetIdentifier(id)
	return nil
}

// PacketReceived implements session.SessionManager for the client.
func (f *five) PacketReceived(p *packets.ControlPacket, messages chan<- *packets.Publish) error {
	switch a := p.Content.(type) {
	case *packets.Puback:
		f.answered(a.PacketID, a.ReasonCode)
	case *packets.Pubcomp:
		f.answered(a.PacketID, a.ReasonCode)
	case *packets.Pubrec:
		if a.ReasonCode >= refused {
			f.answered(a.PacketID, a.ReasonCode)
			return nil
		}
		_, err := (&packets.Pubrel{PacketID: a.PacketID}).WriteTo(f.wire)
		return err
	case *packets.Suback, *packets.Unsuback:
		f.mu.Lock()
		answer := f.asked[p.PacketID()]
		delete(f.asked, p.PacketID())
		f.mu.Unlock()
		if answer != nil {
			answer <- *p // has room for it
		}
	default:
		return f.SessionManager.PacketReceived(p, messages)
	}
	return nil
}

// answered completes a message.
func (f *five) answered(id uint16, code byte) {
	f.mu.Lock()
	m := f.open[id]
	delete(f.open, id)
	f.mu.Unlock()
	if m == nil {
		return
	}
	var err error
	if code >= refused {
		err = errorMap.Cause(reason(code))
	}
	f.l.complete(m, err)
}

func (f *five) over(why error) {
	f.mu.Lock()
	open := f.open
	f.open, f.closed = nil, true
	f.mu.Unlock()
	f.writing.Lock()
	f.writing.Unlock() //nolint:staticcheck // waits only
	for _, m := range open {
		f.l.complete(m, why)
	}
}

// take delivers a message, and acknowledges it.
func (f *five) take(p paho.PublishReceived) (bool, error) {
	m := p.Packet
	if f.l.take(m.Topic, m.Payload, m.Duplicate()) && m.QoS > 0 {
		f.ack.PacketID, f.ack.QoS = m.PacketID, m.QoS
		return true, f.SessionManager.Ack(&f.ack)
	}
	return true, nil
}

// Ack implements session.SessionManager for the client: take has already acknowledged.
func (f *five) Ack(*packets.Publish) error { return nil }

func (f *five) subscribe(ctx context.Context, qos byte, filters ...string) ([]byte, error) {
	ctx, cancel := f.l.during(ctx)
	defer cancel()
	var s paho.Subscribe
	for _, t := range filters {
		s.Subscriptions = append(s.Subscriptions, paho.SubscribeOptions{Topic: t, QoS: qos})
	}
	a, err := f.client.Subscribe(ctx, &s)
	if a != nil && len(a.Reasons) == len(filters) {
		return a.Reasons, nil
	}
	if err == nil {
		err = errors.New("the server's answer to SUBSCRIBE does not fit")
	}
	return nil, cause(ctx, err)
}

func (f *five) ask(ctx context.Context) error {
	ctx, cancel := f.l.during(ctx)
	defer cancel()
	a, err := f.client.Unsubscribe(ctx, &paho.Unsubscribe{Topics: []string{nothing}})
	if a != nil {
		return nil
	}
	return cause(ctx, err)
}

func (f *five) end(forget bool) {
	none := uint32(0)
	d := &paho.Disconnect{}
	if f.l.keep && forget {
		d.Properties = &paho.DisconnectProperties{SessionExpiryInterval: &none}
	}
	_ = f.client.Disconnect(d)
}
