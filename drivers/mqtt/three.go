package mqtt

import (
	"bufio"
	"context"
	"net"
	"net/url"
	"sync"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/latch"
)

// three is the client for version 3.1.1.
type three struct {
	l      *line
	client paho.Client
	sent   chan receipt // read by the goroutine that waits for answers, in message order
	all    sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// A receipt is a message waiting for its answer.
type receipt struct {
	paho.Token
	m *driver.Message
}

// three connects with version 3.1.1.
func (c *Config) three(ctx context.Context, l *line) error {
	t := &three{l: l, sent: make(chan receipt, c.window(0))}
	l.client = t
	o := paho.NewClientOptions().AddBroker("tcp://" + l.socket.RemoteAddr().String()).SetProtocolVersion(4).
		SetClientID(l.id).SetCleanSession(!l.keep).SetUsername(c.User).SetPassword(c.Password.Reveal()).
		SetKeepAlive(c.KeepAlive).SetPingTimeout(max(c.KeepAlive, c.Timeout)).SetConnectTimeout(c.Timeout).SetWriteTimeout(c.Timeout).
		SetAutoReconnect(false).SetAutoAckDisabled(true).
		SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) {
			return &buffered{l.socket, bufio.NewReaderSize(l.socket, readAhead)}, nil
		}).
		SetDefaultPublishHandler(t.take).
		SetConnectionLostHandler(func(_ paho.Client, err error) { l.fail(errorMap.Lost(err)) })
	t.client = paho.NewClient(o)
	t.all.Go(t.confirm)
	err := t.wait(ctx, t.client.Connect())
	if err != nil {
		t.over(err)
	}
	return err
}

// wait waits for an answer.
func (t *three) wait(ctx context.Context, token paho.Token) error {
	select {
	case <-token.Done():
		return token.Error()
	case <-ctx.Done():
		return cause(ctx, ctx.Err())
	}
}

func (t *three) publish(topic string, qos byte, m *driver.Message) {
	r := receipt{t.client.Publish(topic, qos, false, m.Payload), m}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.sent <- r // never blocks: the producer's window is no larger
		return
	}
	t.l.complete(m, context.Cause(t.l.life))
}

// flush implements client: the client has sent, or sends.
func (t *three) flush() {}

// confirm waits for answers, which the server sends in message order.
func (t *three) confirm() {
	for r := range t.sent {
		select {
		case <-r.Done():
		case <-t.l.life.Done():
		}
		var err error
		if !latch.Closed(r.Done()) {
			err = context.Cause(t.l.life)
		} else if err = r.Error(); err != nil {
			err = errorMap.Lost(err)
		}
		t.l.complete(r.m, err)
	}
}

func (t *three) over(error) {
	t.mu.Lock()
	if !t.closed {
		close(t.sent)
	}
	t.closed = true
	t.mu.Unlock()
	t.all.Wait()
}

// take delivers a message, and acknowledges it.
func (t *three) take(_ paho.Client, m paho.Message) {
	if t.l.take(m.Topic(), m.Payload(), m.Duplicate()) {
		m.Ack()
	}
}

func (t *three) subscribe(ctx context.Context, qos byte, filters ...string) ([]byte, error) {
	ctx, cancel := t.l.during(ctx)
	defer cancel()
	levels := map[string]byte{}
	for _, f := range filters {
		levels[f] = qos
	}
	token := t.client.SubscribeMultiple(levels, nil)
	if err := t.wait(ctx, token); err != nil {
		return nil, err
	}
	granted := make([]byte, len(filters))
	for i, f := range filters {
		granted[i] = token.(*paho.SubscribeToken).Result()[f]
	}
	return granted, nil
}

func (t *three) ask(ctx context.Context) error {
	ctx, cancel := t.l.during(ctx)
	defer cancel()
	return t.wait(ctx, t.client.Unsubscribe(nothing))
}

// end implements client. A kept session ends when the same client reconnects without it.
func (t *three) end(bool) { t.client.Disconnect(uint(closeWait.Milliseconds())) }
