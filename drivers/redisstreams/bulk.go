package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

const (
	// gatherMost is how many messages that have gathered leave in one call at most.
	gatherMost = 10_000
	// settleWait bounds how long closing waits for answers under way.
	settleWait = 2 * time.Second
	// endWait bounds how long the client takes to fail what got none, its sockets
	// closed.
	endWait = 3 * time.Second
)

// A batch is what leaves in one call of the client, and the answers.
type batch struct {
	ms   []*driver.Message
	cmds []*redis.StringCmd
}

// A bulk sends batches one after the other, each with the WAIT that its settings
// ask for, on a goroutine of its own.
type bulk struct {
	p    *producer
	life context.Context // ends when the bulk closes
	stop context.CancelFunc
	wake chan struct{}
	gone chan struct{} // closed when the goroutine has returned

	mu      sync.Mutex
	queue   []batch // the engine bounds it: not more messages than may be in flight
	sending []*driver.Message
	open    int // messages not completed
	idle    chan struct{}
	closing bool
}

func newBulk(p *producer) *bulk {
	b := &bulk{p: p, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	b.life, b.stop = context.WithCancel(context.Background())
	go b.run()
	return b
}

// add takes messages, which join what waits already: a WAIT holds up its
// connection, and those behind it are not to wait for one each. It does not wait.
func (b *bulk) add(x batch) {
	b.mu.Lock()
	b.open += len(x.ms)
	if n := len(b.queue); n > 0 && len(b.queue[n-1].ms)+len(x.ms) <= gatherMost {
		last := &b.queue[n-1]
		last.ms, last.cmds = append(last.ms, x.ms...), append(last.cmds, x.cmds...)
	} else {
		b.queue = append(b.queue, x)
	}
	b.mu.Unlock()
	b.signal()
}

func (b *bulk) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *bulk) run() {
	defer close(b.gone)
	for {
		b.mu.Lock()
		var x batch
		if len(b.queue) > 0 {
			x = b.queue[0]
			b.queue[0] = batch{}
			b.queue = b.queue[1:]
			b.sending = x.ms
		}
		b.mu.Unlock()
		if x.ms == nil {
			select {
			case <-b.wake:
				continue
			case <-b.life.Done():
				return
			}
		}
		err := b.send(x)
		b.mu.Lock()
		closing, mine := b.closing, b.sending != nil
		b.sending = nil
		b.mu.Unlock()
		if !mine {
			return // completed by close
		}
		for i, m := range x.ms {
			b.p.done.Complete(m, b.fate(x.cmds[i].Err(), err, closing))
		}
		b.completed(len(x.ms))
	}
}

// send sends a batch in one call and returns what is wrong with it as a whole.
func (b *bulk) send(x batch) error {
	cfg := b.p.cfg
	ctx := context.Background()
	pipe := b.p.link.Pipeline()
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

// fate returns the error of one message from its own answer and the batch's.
func (b *bulk) fate(own, whole error, closing bool) error {
	err := own
	if err == nil {
		err = whole
	}
	if err == nil {
		return nil
	}
	b.p.link.Heed(err)
	if c := redisconn.Cause(err); redisconn.Answered(err) || errors.Is(c, driver.ErrTimeout) {
		return added(c)
	}
	if closing {
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	}
	b.p.link.Lost()
	return redisconn.Cause(err)
}

// completed counts n completions.
func (b *bulk) completed(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open -= n
	if b.open == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// wait returns when nothing is open, or with ctx's error.
func (b *bulk) wait(ctx context.Context) error {
	b.mu.Lock()
	if b.open == 0 {
		b.mu.Unlock()
		return ctx.Err()
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close waits for answers under way, at most 2 s, and ends the rest with ErrClosed.
func (b *bulk) close(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, settleWait)
	err := b.wait(short)
	cancel()
	b.mu.Lock()
	b.closing = true
	unsent := b.queue
	b.queue = nil
	b.mu.Unlock()
	for _, x := range unsent {
		for _, m := range x.ms {
			b.p.done.Complete(m, driver.ErrClosed)
		}
		b.completed(len(x.ms))
	}
	if err != nil {
		b.p.link.Refuse()
		end, cancel := context.WithTimeout(context.Background(), endWait)
		err = b.wait(end)
		cancel()
	}
	b.stop()
	if err == nil {
		<-b.gone
		return
	}
	b.mu.Lock()
	left := b.sending
	b.sending = nil
	b.mu.Unlock()
	for _, m := range left {
		b.p.done.Complete(m, errors.Join(driver.ErrClosed, driver.ErrAbandoned))
	}
	b.completed(len(left))
}
