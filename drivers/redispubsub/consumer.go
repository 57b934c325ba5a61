package redispubsub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// readyLimit limits how long the server may take to confirm its subscriptions.
const readyLimit = 30 * time.Second

// A consumer is its subscription's subscriber, on its own connection.
type consumer struct {
	conn     *conn
	link     *redisconn.Link
	channels []string
	sources  map[string]int32 // by channel: index of the destination
	heard    atomic.Uint64    // counts everything received from the server
	pings    pings
}

// Consumer connects.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	x := &consumer{conn: c, sources: map[string]int32{}}
	for i, d := range spec.Destinations {
		channel := redisconn.Key(c.run, d)
		x.channels, x.sources[channel] = append(x.channels, channel), int32(i)
	}
	var err error
	if x.link, err = c.link.Another(ctx, c.run.For(&spec), spec.Name()); err != nil {
		return nil, err
	}
	c.consumers.Note(x, spec.Subscription)
	return x, nil
}

// Run implements driver.Consumer. It delivers each message from the goroutine that reads the
// socket.
func (x *consumer) Run(ctx context.Context, sink driver.Sink) error {
	// Not ctx, for which the client would abort the connection in mid-message.
	inside := context.WithoutCancel(ctx)
	ps := x.link.Subscribe(inside, x.channels...)
	x.pings.begin(ps)
	// Close the sockets first: while connecting, the client holds a lock that Close takes.
	stop := context.AfterFunc(ctx, x.link.Refuse)
	defer func() {
		stop()
		x.link.Refuse()
		_ = ps.Close()
	}()
	// Closing the socket interrupts a server that does not answer.
	late := time.AfterFunc(readyLimit, x.link.Kill)
	defer late.Stop()

	var beat sync.WaitGroup
	defer beat.Wait()
	beating, end := context.WithCancel(ctx)
	defer end()
	missing, ready := len(x.channels), false
	ds := make([]driver.Delivery, 1)
	for {
		said, err := ps.Receive(inside)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !ready:
			return fmt.Errorf("subscribe: %w", redisconn.Cause(err))
		case err != nil:
			cause := redisconn.Cause(err)
			if errors.Is(cause, driver.ErrAuth) {
				return fmt.Errorf("subscription lost: %w", cause)
			}
			x.link.Lost()
			sink.Fault(fmt.Errorf("what is published until it subscribes again is lost: %w", cause))
			retry.Pause(ctx, x.conn.cfg.ReconnectWait)
			continue
		}
		x.heard.Add(1)
		switch m := said.(type) {
		case *redis.Message:
			ds[0] = driver.Delivery{Payload: redisconn.Bytes(m.Payload), Partition: -1, Source: x.source(m.Channel)}
			if err := sink.Deliver(ds); err != nil {
				sink.Fault(fmt.Errorf("not delivered again, Redis Pub/Sub cannot: %w", err))
			}
		case *redis.Pong:
			x.pings.pong(m.Payload)
		case *redis.Subscription:
			if missing--; missing == 0 && !ready {
				ready = true
				late.Stop()
				sink.Ready()
				beat.Go(func() { x.beat(beating, ps, sink) })
			}
		}
	}
}

// source returns the index of a channel's destination; -1: none.
func (x *consumer) source(channel string) int32 {
	if i, ok := x.sources[channel]; ok {
		return i
	}
	return -1
}

// beat pings the server at intervals, and breaks the connection after two intervals of silence.
func (x *consumer) beat(ctx context.Context, ps *redis.PubSub, sink driver.Sink) {
	ticker := time.NewTicker(x.conn.cfg.PingInterval)
	defer ticker.Stop()
	silent := 0
	for last := x.heard.Load(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := x.heard.Load()
		if now != last {
			silent = 0
		} else if silent++; silent > 2 {
			silent = 0
			// Reported here because the client returns an error only after it has tried to
			// reconnect, which succeeds even with a stopped server.
			sink.Fault(fmt.Errorf("the server has said nothing for two of ping-interval: %w", driver.ErrDisconnected))
			x.link.Lost()
			x.link.Kill()
			continue
		}
		last = now
		_ = ps.Ping(context.WithoutCancel(ctx)) // Receive notices a lost connection
	}
}

// Close ends the connection.
func (x *consumer) Close(ctx context.Context) error {
	x.conn.consumers.Forget(x)
	return x.link.Close(ctx)
}
