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

// five is the client for version 5. That client does not report on messages sent without waiting,
// so five sits between the client and its session, where answers arrive.
type five struct {
	session.SessionManager // the client's own
	l                      *line
	client                 *paho.Client

	out     paho.Publish // what publish sends
	current *driver.Message
	held    bool // the session has accepted current
	ack     packets.Publish

	mu     sync.Mutex
	open   map[uint16]*driver.Message // in flight, by packet identifier
	closed bool
}

// five connects with version 5.
func (c *Config) five(ctx context.Context, l *line) error {
	f := &five{l: l, SessionManager: l.memory, open: map[uint16]*driver.Message{}}
	if l.memory == nil {
		f.SessionManager = state.NewInMemory()
	}
	l.client = f
	socket := l.socket
	if isTLS(socket) {
		socket = packets.NewThreadSafeConn(socket) // the client writes a packet in pieces
	}
	f.client = paho.NewClient(paho.ClientConfig{
		Conn: socket, Session: f, PacketTimeout: c.Timeout,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){f.take},
		OnServerDisconnect: func(d *paho.Disconnect) {
			l.fail(fmt.Errorf("%w: the server closed it: %w", driver.ErrDisconnected, reason(d.ReasonCode)))
		},
		OnClientError: func(err error) { l.fail(words.Lost(err)) },
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

// publish implements client. The session copies what it accepts.
func (f *five) publish(topic string, qos byte, m *driver.Message) {
	f.out.Topic, f.out.QoS, f.out.Payload = topic, qos, m.Payload
	f.current, f.held = m, false
	_, err := f.client.PublishWithOptions(f.l.life, &f.out, paho.PublishOptions{Method: paho.PublishMethod_AsyncSend})
	switch {
	case f.held && err != nil:
		f.l.fail(words.Lost(err)) // including m
	case f.held:
	case err != nil:
		f.l.complete(m, words.Lost(err))
	case qos > 0:
		f.l.complete(m, context.Cause(f.l.life))
	default:
		f.l.complete(m, nil)
	}
}

// AddToSession implements session.SessionManager for the client.
func (f *five) AddToSession(ctx context.Context, p session.Packet, answer chan<- packets.ControlPacket) error {
	err := f.SessionManager.AddToSession(ctx, p, answer)
	if m, ok := p.(*packets.Publish); ok && err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.held = !f.closed; f.held {
			f.open[m.PacketID] = f.current
		}
	}
	return err
}

// PacketReceived implements session.SessionManager for the client.
func (f *five) PacketReceived(p *packets.ControlPacket, messages chan<- *packets.Publish) error {
	err := f.SessionManager.PacketReceived(p, messages)
	switch a := p.Content.(type) {
	case *packets.Puback:
		f.answered(a.PacketID, a.ReasonCode)
	case *packets.Pubcomp:
		f.answered(a.PacketID, a.ReasonCode)
	case *packets.Pubrec:
		if a.ReasonCode >= refused {
			f.answered(a.PacketID, a.ReasonCode)
		}
	}
	return err
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
		err = words.Cause(reason(code))
	}
	f.l.complete(m, err)
}

func (f *five) over(why error) {
	f.mu.Lock()
	open := f.open
	f.open, f.closed = nil, true
	f.mu.Unlock()
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
