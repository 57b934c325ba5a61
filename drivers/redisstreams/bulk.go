package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// gatherMost is the maximum number of gathered messages per call.
const gatherMost = 10_000

// A batch is one call of the client, with its answers.
type batch struct {
	ms   []*driver.Message
	cmds []*redis.StringCmd
}

// A bulk sends batches in order, each with the WAIT that its settings require, on its own
// goroutine.
type bulk struct {
	shard   *shard
	open    *blocking.Outstanding
	closing atomic.Bool
	wake    chan struct{}
	stop    chan struct{} // closed when nothing more will be added
	ended   chan struct{} // closed when the goroutine has returned

	mu      sync.Mutex
	queue   []batch // limited by the engine to the messages in flight
	sending []*driver.Message
}

func newBulk(l *shard) *bulk {
	b := &bulk{shard: l, open: blocking.NewOutstanding(), wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	go b.run()
	return b
}

// add adds messages, which join those already waiting: a WAIT blocks its connection, so later
// messages should share one. It does not wait.
func (b *bulk) add(x batch) {
	b.open.Add(len(x.ms))
	b.mu.Lock()
	if n := len(b.queue); n > 0 && len(b.queue[n-1].ms)+len(x.ms) <= gatherMost {
		last := &b.queue[n-1]
		last.ms, last.cmds = append(last.ms, x.ms...), append(last.cmds, x.cmds...)
	} else {
		b.queue = append(b.queue, x)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *bulk) run() {
	defer close(b.ended)
	for {
		x, ok := b.next()
		if !ok {
			return
		}
		err := b.send(x)
		b.mu.Lock()
		given := b.sending == nil
		b.sending = nil
		b.mu.Unlock()
		if given {
			return // completed by close
		}
		for i, m := range x.ms {
			b.shard.done.Complete(m, b.fate(x.cmds[i].Err(), err))
		}
		b.open.Done(len(x.ms))
	}
}

// next waits for a batch; there is none after close.
func (b *bulk) next() (x batch, ok bool) {
	for {
		b.mu.Lock()
		if ok = len(b.queue) > 0; ok {
			x = b.queue[0]
			b.queue[0] = batch{}
			b.queue = b.queue[1:]
			b.sending = x.ms
		}
		b.mu.Unlock()
		if ok {
			return x, true
		}
		select {
		case <-b.wake:
		case <-b.stop:
			return x, false
		}
	}
}

// send sends a batch in one call and returns an error that concerns all of it.
func (b *bulk) send(x batch) error {
	cfg := b.shard.cfg
	ctx := context.Background()
	pipe := b.shard.link.Pipeline()
	for _, cmd := range x.cmds {
		_ = pipe.Process(ctx, cmd) // only queues
	}
	var replicas *redis.IntCmd
	var synced *redis.IntSliceCmd
	switch {
	case cfg.WaitAOF:
		synced = redis.NewIntSliceCmd(ctx, "waitaof", 1, cfg.WaitReplicas, cfg.WaitTimeout.Milliseconds())
		_ = pipe.Process(ctx, synced)
	case cfg.WaitReplicas > 0:
		replicas = redis.NewIntCmd(ctx, "wait", cfg.WaitReplicas, cfg.WaitTimeout.Milliseconds())
		_ = pipe.Process(ctx, replicas)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	switch {
	case synced != nil:
		have, err := synced.Result()
		if err == nil && (len(have) != 2 || have[0] < 1 || have[1] < int64(cfg.WaitReplicas)) {
			err = fmt.Errorf("not synced within wait-timeout by the server and %d replicas: %w", cfg.WaitReplicas, driver.ErrTimeout)
		}
		return err
	case replicas != nil:
		have, err := replicas.Result()
		if err == nil && have < int64(cfg.WaitReplicas) {
			err = fmt.Errorf("not taken within wait-timeout by %d replicas: %w", cfg.WaitReplicas, driver.ErrTimeout)
		}
		return err
	}
	return nil
}

// fate returns a message's error, given its own answer and the batch's error.
func (b *bulk) fate(own, whole error) error {
	err := own
	if err == nil {
		err = whole
	}
	if err == nil {
		return nil
	}
	b.shard.link.CheckMoved(err)
	c := redisconn.Cause(err)
	switch {
	case redisconn.Answered(err), errors.Is(c, driver.ErrTimeout):
		return added(c)
	case b.closing.Load():
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	}
	b.shard.link.Lost()
	return c
}

// close waits at most 2 s for outstanding answers, and ends the rest with ErrClosed. It is
// idempotent.
func (b *bulk) close(ctx context.Context) {
	if b.closing.Swap(true) {
		return
	}
	err := b.shard.link.Settle(ctx, b.open)
	close(b.stop)
	if err == nil {
		<-b.ended
		return
	}
	b.mu.Lock()
	left, unsent := b.sending, b.queue
	b.sending, b.queue = nil, nil
	b.mu.Unlock()
	b.give(left, errors.Join(driver.ErrClosed, driver.ErrAbandoned))
	for _, x := range unsent {
		b.give(x.ms, driver.ErrClosed)
	}
}

// give completes messages without an answer.
func (b *bulk) give(ms []*driver.Message, err error) {
	for _, m := range ms {
		b.shard.done.Complete(m, err)
	}
	b.open.Done(len(ms))
}
