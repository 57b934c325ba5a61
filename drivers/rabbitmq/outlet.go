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

// An outlet is one connection of a producer, with what was sent on it and is not
// confirmed.
type outlet struct {
	*link
	producer *producer
	channel  *client.Channel
	over     chan *client.Error // the channel's end
	confirms bool

	// write is held while a message is written: until then its bytes are not the
	// caller's again, whatever becomes of the connection.
	write sync.Mutex

	mu      sync.Mutex
	sent    map[uint64]*driver.Message // by delivery tag
	low     uint64                     // the lowest tag that may be in sent
	next    uint64
	back    map[uint64]error   // messages that came back, and will be confirmed
	streaks map[string]*streak // by destination
	final   error              // not nil: nothing is sent any more

	ready []fate // of take
}

// A fate is what became of a message.
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

// publish has the client write a message. After an error the message is still the
// caller's to complete.
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
	// Where this fails the channel is over, and its messages end with it: this one was
	// not written, whatever else was.
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

// errRefused is the server's basic.nack: its queue is full and rejects, or it failed.
var errRefused = fmt.Errorf("%w: refused by the server (basic.nack)", driver.ErrOverloaded)

func (o *outlet) confirmed(tag uint64, multiple, ok bool) {
	var err error
	if !ok {
		err = errRefused
	}
	o.take(tag, multiple, err)
}

// take completes a message, or all up to it. One goroutine at a time calls it.
func (o *outlet) take(tag uint64, multiple bool, err error) {
	o.mu.Lock()
	if tag >= o.next { // of what was not sent: it confirms nothing
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
		o.low++ // now, and not for all of them at once
	}
	o.mu.Unlock()
	for _, f := range ready {
		o.producer.Complete(f.m, f.err)
	}
	clear(ready)
	o.ready = ready
}

// remove takes a message out, and returns what it came back with, or else err. mu is held.
func (o *outlet) remove(tag uint64, err error) error {
	delete(o.sent, tag)
	if back := o.back[tag]; back != nil {
		delete(o.back, tag)
		return errors.Join(err, back)
	}
	return err
}

// returned implements listener. The server does not say which message it was: it is
// the first with these bytes.
func (o *outlet) returned(code uint16, body []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.confirms {
		// It has completed.
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

// finish completes what is not confirmed, and all that comes. It waits until nothing is
// being written.
func (o *outlet) finish(err error) {
	o.write.Lock()
	defer o.write.Unlock()
	o.mu.Lock()
	if o.final == nil {
		if o.final = err; errors.Is(err, driver.ErrTooLarge) {
			o.final = driver.ErrDisconnected // that was another message
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

// giveUp has all that comes fail with err.
func (o *outlet) giveUp(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.final = err
}
