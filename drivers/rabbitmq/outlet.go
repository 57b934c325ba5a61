package rabbitmq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
)

// An outlet is one connection of a producer, with the messages sent on it and not confirmed.
type outlet struct {
	*link
	producer *producer
	channel  *client.Channel
	over     chan *client.Error // the channel's end
	confirms bool

	// write is held while a message is written: until then its bytes are in use, whatever becomes
	// of the connection.
	write sync.Mutex

	mu      sync.Mutex
	sent    map[uint64]*driver.Message // by delivery tag
	low     uint64                     // the lowest tag possibly in sent
	next    uint64
	back    map[uint64]error   // returned messages that will be confirmed
	streaks map[string]*streak // by destination
	final   error              // not nil: nothing more is sent

	ready []fate // used by take
}

// A fate is the outcome of a message.
type fate struct {
	m   *driver.Message
	err error
}

func newOutlet(p *producer) *outlet {
	return &outlet{
		producer: p, confirms: p.conn.cfg.Confirm, low: 1, next: 1,
		sent: map[uint64]*driver.Message{}, back: map[uint64]error{}, streaks: map[string]*streak{},
	}
}

// publish makes the client write a message. After an error, the caller must complete the message.
func (o *outlet) publish(ctx context.Context, at place, m *driver.Message) error {
	o.write.Lock()
	defer o.write.Unlock()
	o.mu.Lock()
	if o.final != nil {
		o.mu.Unlock()
		return o.final
	}
	tag := o.next
	o.next++
	o.sent[tag] = m
	o.mu.Unlock()
	// If this fails, the channel is closed and its messages end with it: this one was not written,
	// whatever else was.
	err := o.channel.PublishWithContext(context.Background(), at.exchange, at.key, o.producer.conn.cfg.Mandatory, false,
		client.Publishing{DeliveryMode: o.producer.mode, Body: m.Payload})
	switch {
	case err == nil && !o.confirms:
		o.take(tag, false, nil)
	case err != nil && ctx.Err() != nil:
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.sent[tag] != nil {
			delete(o.sent, tag)
			return ctx.Err()
		}
	}
	return nil
}

// errRefused is the server's basic.nack: the queue is full and rejects, or it failed.
var errRefused = fmt.Errorf("%w: refused by the server (basic.nack)", driver.ErrOverloaded)

func (o *outlet) confirmed(tag uint64, multiple, ok bool) {
	var err error
	if !ok {
		err = errRefused
	}
	o.take(tag, multiple, err)
}

// take completes a message, or all up to it. Only one goroutine at a time calls it.
func (o *outlet) take(tag uint64, multiple bool, err error) {
	o.mu.Lock()
	if tag >= o.next { // an unsent tag: it confirms nothing
		o.mu.Unlock()
		return
	}
	first := tag
	if multiple {
		first = o.low
	}
	ready := o.ready[:0]
	for t := first; t <= tag; t++ {
		m := o.sent[t]
		if m == nil {
			continue
		}
		o.fated(m.Destination, err != nil)
		ready = append(ready, fate{m, o.remove(t, err)})
	}
	for o.low < o.next && o.sent[o.low] == nil {
		o.low++ // incremental, rather than all at once
	}
	o.mu.Unlock()
	for _, f := range ready {
		o.producer.Complete(f.m, f.err)
	}
	clear(ready)
	o.ready = ready
}

// remove removes a message, and returns the reason why it was returned, or else err. mu is held.
func (o *outlet) remove(tag uint64, err error) error {
	delete(o.sent, tag)
	if back := o.back[tag]; back != nil {
		delete(o.back, tag)
		return errors.Join(err, back)
	}
	return err
}

// returned implements listener. The server does not identify the message: it is the first one with
// these bytes.
func (o *outlet) returned(code uint16, body []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.confirms {
		// The message has already completed.
		o.producer.conn.run.Tell("returned", o.producer.name+": messages that no queue took come back")
		return
	}
	for tag := o.low; tag < o.next; tag++ {
		if m := o.sent[tag]; m != nil && o.back[tag] == nil && bytes.Equal(m.Payload, body) {
			o.back[tag] = fmt.Errorf("%w: no queue took it (basic.return, %d)", driver.ErrUnsupported, code)
			return
		}
	}
}

func (o *outlet) delivered() {}
func (o *outlet) reading()   {}

// finish completes unconfirmed messages, and all later ones. It waits until nothing is being
// written.
func (o *outlet) finish(err error) {
	o.write.Lock()
	defer o.write.Unlock()
	o.mu.Lock()
	if o.final == nil {
		if o.final = err; errors.Is(err, driver.ErrTooLarge) {
			o.final = driver.ErrDisconnected // that was another message's error
		}
	}
	var left []*driver.Message
	for ; o.low < o.next; o.low++ {
		if m := o.sent[o.low]; m != nil {
			left = append(left, m)
		}
	}
	clear(o.sent)
	o.mu.Unlock()
	size := oversize.FindStringSubmatch(err.Error())
	for _, m := range left {
		e := err
		if size != nil && strconv.Itoa(len(m.Payload)) != size[1] {
			e = fmt.Errorf("%w: the server closed the channel for another message's size", driver.ErrDisconnected)
		}
		o.producer.Complete(m, e)
	}
}

// giveUp makes all later messages fail with err.
func (o *outlet) giveUp(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.final = err
}
