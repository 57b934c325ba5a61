package mongodb

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
)

// closeLimit is how long Close waits for queued messages.
const closeLimit = 2 * time.Second

// A document is a message as stored. Taking it adds token and deliveries.
type document struct {
	ID           bson.ObjectID `bson:"_id"` // ascending within this process
	NextDelivery bson.DateTime `bson:"next_delivery"`
	Payload      []byte        `bson:"payload"`
	Key          []byte        `bson:"key,omitempty"`
}

// order is the order in which messages are taken, and the index for it.
var order = bson.D{{Key: "next_delivery", Value: 1}, {Key: "_id", Value: 1}}

// A producer has its own client, with a connection per sender.
type producer struct {
	*blocking.Pool
	conn    *conn
	name    string
	link    *link
	done    driver.Completer
	targets *driver.Targets[*mongo.Collection]
	lost    atomic.Bool // the last insert was not answered
}

// Producer looks up the collections.
func (c *conn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &producer{conn: c, name: spec.Name(), done: done}
	var err error
	if p.link, err = c.cfg.connect(c.cfg.Senders); err != nil {
		return nil, err
	}
	p.targets, err = driver.NewTargets(spec.Destinations, func(d string) (*mongo.Collection, error) {
		name, err := c.found(ctx, d)
		return p.link.db.Collection(name), err
	})
	if err != nil {
		p.link.close()
		return nil, err
	}
	p.Pool = blocking.New(c.cfg.Senders, spec.Room(), p.send, p)
	return p, nil
}

// A batch is a set of messages inserted by one call. It passes through the pool as one message.
type batch struct {
	driver.Message
	ms   []*driver.Message
	errs []error // per message, if the answer distinguishes them
}

// refusal returns why m must not be sent, or nil.
func (p *producer) refusal(ctx context.Context, m *driver.Message) error {
	_, err := p.targets.Of(ctx, m)
	if err == nil {
		err = driver.CheckSize(len(m.Payload)+len(m.Key), documentMost-overhead, sizeLimit)
	}
	return err
}

// Publish implements driver.Producer. The pool has room for everything that may be in flight.
func (p *producer) Publish(ctx context.Context, m *driver.Message) {
	if err := p.refusal(ctx, m); err != nil {
		p.done.Complete(m, err)
		return
	}
	p.Pool.Publish(ctx, m)
}

func (p *producer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	b := &batch{ms: make([]*driver.Message, 0, len(ms))}
	for _, m := range ms {
		if err := p.refusal(ctx, m); err != nil {
			p.done.Complete(m, err)
			continue
		}
		b.ms = append(b.ms, m)
	}
	if len(b.ms) > 0 {
		b.Destination, b.Slot = b.ms[0].Destination, b
		p.Pool.Publish(ctx, &b.Message)
	}
}

// Complete implements driver.Completer for the pool.
func (p *producer) Complete(m *driver.Message, err error) {
	b, ok := m.Slot.(*batch)
	if !ok || m != &b.Message {
		p.done.Complete(m, err)
		return
	}
	for i, m := range b.ms {
		if err == nil && b.errs != nil {
			p.done.Complete(m, b.errs[i])
			continue
		}
		p.done.Complete(m, err)
	}
}

func (p *producer) stored(m *driver.Message) *document {
	return &document{ID: bson.NewObjectID(), NextDelivery: p.conn.clock.now(), Payload: m.Payload, Key: m.Key}
}

// send performs one insert. The client copies the bytes before it writes them.
func (p *producer) send(ctx context.Context, _ int, m *driver.Message) error {
	ctx, cancel := context.WithTimeout(ctx, p.conn.cfg.Timeout)
	defer cancel()
	to := p.targets.All()[m.Destination]
	var err error
	if b, ok := m.Slot.(*batch); ok && m == &b.Message {
		docs := make([]*document, len(b.ms))
		for i, m := range b.ms {
			docs[i] = p.stored(m)
		}
		_, err = to.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
		err = b.each(err)
	} else {
		_, err = to.InsertOne(ctx, p.stored(m))
	}
	if err == nil {
		if p.lost.Load() && p.lost.Swap(false) {
			p.conn.run.Tell(driver.Reconnect, p.name)
		}
		return nil
	}
	err = words.Cause(err)
	if errors.Is(err, driver.ErrDisconnected) || errors.Is(err, driver.ErrTimeout) {
		p.lost.Store(true)
	}
	return err
}

// each records which messages the server refused, if it reports that. Otherwise it returns err,
// which applies to all messages.
func (b *batch) each(err error) error {
	var failed mongo.BulkWriteException
	if !errors.As(err, &failed) || failed.WriteConcernError != nil {
		return err
	}
	b.errs = make([]error, len(b.ms))
	for _, e := range failed.WriteErrors {
		if e.Index < 0 || e.Index >= len(b.errs) {
			return err
		}
		b.errs[e.Index] = words.Cause(e.WriteError)
	}
	return nil
}

// Close implements driver.Producer. It waits for queued and active messages, within ctx and 2 s;
// the rest then completes with ErrClosed.
func (p *producer) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	err := p.Pool.Close(ctx)
	p.link.close()
	return err
}
