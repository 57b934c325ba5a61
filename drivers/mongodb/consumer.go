package mongodb

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A feed repeatedly takes a message, delivers it, and settles it.
type feed struct {
	conn   *conn
	run    driver.Run
	link   *link
	end    func() // closes link
	name   string
	from   *mongo.Collection
	scout  chan struct{} // holds a token while a feed of the collection polls after finding nothing
	auto   bool          // the message is deleted when taken
	source int32
	lost   bool
	ds     [1]driver.Delivery
}

// Consumer looks up the collections, which keep their documents for any consumer. A message is one
// document, so a destination has only one subscription.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	receivers := c.cfg.Receivers
	if spec.Prefetch > 0 {
		receivers = min(receivers, spec.Prefetch)
	}
	name := spec.Name()
	l, err := c.cfg.connect(receivers * len(spec.Destinations))
	if err != nil {
		return nil, err
	}
	end := sync.OnceFunc(l.close) // shared by the feeds
	return blocking.NewFeeds(spec.Destinations, func(source int, d string) (x blocking.Feeds, err error) {
		collection, err := c.found(ctx, d)
		if err != nil {
			end()
			return nil, err
		}
		scout := make(chan struct{}, 1)
		for range receivers {
			x = append(x, &feed{
				conn: c, run: c.run.For(&spec), link: l, end: end, name: name, from: l.db.Collection(collection), scout: scout,
				auto: spec.Settle == driver.SettleAuto, source: int32(source),
			})
		}
		return x, nil
	})
}

func (f *feed) Close() { f.end() }

// Run implements blocking.Feed. It ends when messages can no longer be taken. The end of ctx does
// not interrupt a call: a message that the server had already taken would be hidden from everyone.
func (f *feed) Run(ctx context.Context, sink driver.Sink) error {
	life, end := context.WithCancel(context.Background())
	defer end()
	defer context.AfterFunc(ctx, func() { retry.Pause(life, endLimit); end() })()
	for ctx.Err() == nil {
		m, err := f.take(life)
		if err == nil && m == nil {
			m, err = f.look(ctx, life)
		}
		switch err = words.Cause(err); {
		case m == nil && life.Err() != nil:
			return nil
		case failure.Hopeless(err):
			return fmt.Errorf("subscription lost: %w", err)
		case err != nil:
			f.lost = true
			sink.Fault(err)
			retry.Pause(ctx, f.conn.cfg.ReconnectWait)
			continue
		}
		f.answered()
		if m != nil {
			f.handOver(ctx, m, sink)
		}
	}
	return nil
}

// answered reports that the connection is back, if it was lost.
func (f *feed) answered() {
	if f.lost {
		f.lost = false
		f.run.Tell(driver.Reconnect, f.name)
	}
}

// look waits for a message: one feed per collection at a time asks the server for the time, takes,
// and pauses. It returns nothing when ctx has ended.
func (f *feed) look(ctx, life context.Context) (*taken, error) {
	select {
	case f.scout <- struct{}{}:
		defer func() { <-f.scout }()
	case <-ctx.Done():
		return nil, nil
	}
	for {
		if err := f.link.ask(life, &f.conn.clock); err != nil {
			return nil, err
		}
		if m, err := f.take(life); err != nil || m != nil {
			return m, err
		}
		f.answered()
		if !retry.Pause(ctx, f.conn.cfg.PollInterval) {
			return nil, nil
		}
	}
}

// taken is a message that this feed holds.
type taken struct {
	raw   bson.Raw
	token bson.ObjectID
}

// serial calls do, one consumer of this process at a time if the server needs that.
func (f *feed) serial(ctx context.Context, do func() error) error {
	if f.conn.cfg.Atomic {
		return do()
	}
	select {
	case f.conn.alone <- struct{}{}:
		defer func() { <-f.conn.alone }()
		return do()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take takes the first message; nil if there is none.
func (f *feed) take(ctx context.Context) (m *taken, err error) {
	err = f.serial(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, f.conn.cfg.Timeout)
		defer cancel()
		m = &taken{token: bson.NewObjectID()}
		due := bson.D{{Key: "next_delivery", Value: bson.D{{Key: "$lte", Value: f.conn.clock.now()}}}}
		if f.auto {
			m.raw, err = f.from.FindOneAndDelete(ctx, due, options.FindOneAndDelete().SetSort(order)).Raw()
			return err
		}
		m.raw, err = f.from.FindOneAndUpdate(ctx, due, bson.D{
			{Key: "$set", Value: bson.D{
				{Key: "next_delivery", Value: f.conn.clock.later(f.conn.cfg.VisibilityTimeout)}, {Key: "token", Value: m.token},
			}},
			{Key: "$inc", Value: bson.D{{Key: "deliveries", Value: int32(1)}}},
		}, options.FindOneAndUpdate().SetSort(order).SetReturnDocument(options.After)).Raw()
		return err
	})
	if err != nil {
		m = nil
	}
	if errors.Is(err, mongo.ErrNoDocuments) {
		err = nil
	}
	return m, err
}

// held matches a message's document while this delivery holds it.
func (m *taken) held() bson.D {
	return bson.D{{Key: "_id", Value: m.raw.Lookup("_id")}, {Key: "token", Value: m.token}}
}

// handOver delivers a message, and then settles it or gives it back.
func (f *feed) handOver(ctx context.Context, m *taken, sink driver.Sink) {
	deliveries, _ := m.raw.Lookup("deliveries").AsInt64OK()
	_, payload, _ := m.raw.Lookup("payload").BinaryOK() // nil if another program stored something else
	_, key, _ := m.raw.Lookup("key").BinaryOK()
	f.ds[0] = driver.Delivery{Payload: payload, Key: key, Partition: -1, Source: f.source, Redelivered: deliveries > 1}
	if f.auto {
		f.ds[0].Redelivered = false
		_ = sink.Deliver(f.ds[:])
		return
	}
	if ctx.Err() != nil || sink.Deliver(f.ds[:]) != nil {
		if err := f.giveBack(m); err != nil {
			sink.Fault(fmt.Errorf("giving a message back: %w", words.Cause(err)))
		}
		return
	}
	err := words.Cause(f.settle(m))
	if err != nil {
		sink.Fault(fmt.Errorf("settling: %w", err))
	}
	sink.Settled(f.ds[:], err)
}

// errLate means that another consumer may have taken the message.
var errLate = errors.New("the visibility timeout was over")

// settle deletes a message. It retries once after a missing answer: if there is then nothing to
// delete, the first attempt had succeeded.
func (f *feed) settle(m *taken) error {
	for attempt := 1; ; attempt++ {
		// Independent of Run's context: accepted messages are settled.
		ctx, cancel := context.WithTimeout(context.Background(), f.conn.cfg.Timeout)
		r, err := f.from.DeleteOne(ctx, m.held())
		cancel()
		switch {
		case err == nil && r.DeletedCount == 0 && attempt == 1:
			return errLate
		case err != nil && attempt == 1 && errors.Is(words.Cause(err), driver.ErrDisconnected):
			continue
		}
		return err
	}
}

// giveBack makes a message available at once.
func (f *feed) giveBack(m *taken) error {
	ctx, cancel := context.WithTimeout(context.Background(), f.conn.cfg.Timeout)
	defer cancel()
	return f.serial(ctx, func() error {
		_, err := f.from.UpdateOne(ctx, m.held(), bson.D{{Key: "$set", Value: bson.D{{Key: "next_delivery", Value: f.conn.clock.now()}}}})
		return err
	})
}
