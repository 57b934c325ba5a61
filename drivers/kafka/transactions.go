package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

const (
	closeWait    = 2 * time.Second        // for transactions in progress, in Close
	recoverPause = 250 * time.Millisecond // between attempts to create a new client
)

// errAborted applies to a message that was never visible: its transaction was not committed.
var errAborted = errors.New("transaction aborted")

// A transactor publishes in transactions, one at a time: each contains everything queued since the
// previous one ended, up to the option transaction. It implements driver.Producer.
type transactor struct {
	conn *conn
	spec driver.ProducerSpec
	done driver.Completer

	life    context.Context // for loop's waits
	end     context.CancelFunc
	stopped chan struct{} // closed when loop has ended

	turn   kafkaconn.Turn // guards the fields below
	inner  *kafkaconn.Producer
	queue  []*driver.Message // not in a transaction yet
	open   int               // messages in queue and in the current transaction
	closed bool

	// Used only by loop.
	batch []*driver.Message // of the current transaction
	lost  bool              // the client is no longer usable

	fate   sync.Mutex
	failed map[*driver.Message]error // messages of batch
}

// transactor connects.
func (c *conn) transactor(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (*transactor, error) {
	t := &transactor{conn: c, spec: spec, done: done, stopped: make(chan struct{}), failed: map[*driver.Message]error{}}
	var err error
	if t.inner, err = t.connect(ctx); err != nil {
		return nil, err
	}
	t.life, t.end = context.WithCancel(context.Background())
	go t.loop()
	return t, nil
}

// connect creates a client with the producer's transactional.id. That aborts transactions that an
// earlier client with this id left open.
func (t *transactor) connect(ctx context.Context) (*kafkaconn.Producer, error) {
	id := fmt.Sprintf("weir.%s.producer.%d", kafkaconn.Token(t.conn.Run.ID), t.spec.Index)
	return t.conn.Hold.Producer(ctx, t.spec, t, id)
}

// Publish implements driver.Producer. It never waits.
func (t *transactor) Publish(ctx context.Context, m *driver.Message) {
	if err := t.take(ctx, m); err != nil {
		t.done.Complete(m, err)
	}
}

// take queues a message, or returns why it is refused.
func (t *transactor) take(ctx context.Context, m *driver.Message) error {
	t.turn.Lock()
	defer t.turn.Unlock()
	// A message that is certain to be refused would abort a whole transaction.
	_, err := t.inner.Targets.Of(ctx, m)
	switch {
	case err != nil:
		return err
	case t.closed:
		return driver.ErrClosed
	}
	t.queue = append(t.queue, m)
	t.open++
	t.turn.Changed()
	return nil
}

// Complete implements driver.Completer: the outcome of a message within its transaction.
func (t *transactor) Complete(m *driver.Message, err error) {
	if err == nil {
		return
	}
	t.fate.Lock()
	defer t.fate.Unlock()
	t.failed[m] = err
}

// loop runs transactions until Close.
func (t *transactor) loop() {
	defer close(t.stopped)
	for t.next() {
		t.transact()
	}
	t.turn.Lock()
	t.batch, t.queue = append(t.batch[:0], t.queue...), nil
	t.turn.Unlock()
	t.complete(func(*driver.Message) error { return driver.ErrClosed })
}

// next waits for messages and makes them the batch; it returns false if Close has ended life.
func (t *transactor) next() bool {
	t.turn.Lock()
	defer t.turn.Unlock()
	if t.turn.Wait(t.life, func() bool { return len(t.queue) > 0 }) != nil || t.life.Err() != nil {
		return false
	}
	n := min(len(t.queue), t.conn.cfg.Transaction)
	t.batch = append(t.batch[:0], t.queue[:n]...)
	t.queue = slices.Delete(t.queue, 0, n)
	return true
}

// transact sends the batch in a transaction and completes it.
func (t *transactor) transact() {
	inner, err := t.begin()
	if err != nil {
		// The queued messages have been tried as well.
		t.turn.Lock()
		t.batch = append(t.batch, t.queue...)
		t.queue = slices.Delete(t.queue, 0, len(t.queue))
		t.turn.Unlock()
		t.complete(func(*driver.Message) error { return err })
		return
	}
	for _, m := range t.batch {
		inner.Publish(context.Background(), m)
	}
	link := inner.Link
	limit, cancel := context.WithTimeout(t.life, t.conn.cfg.DeliveryTimeout)
	defer cancel()
	if inner.Flush(limit) != nil {
		// The client drops requests in flight only when it is closed. Transactions that remain open
		// are aborted when the next client begins.
		why := driver.ErrTimeout
		if t.life.Err() != nil {
			why = driver.ErrClosed
		}
		t.lost = true
		_ = inner.Close(limit)
		t.complete(func(*driver.Message) error { return fmt.Errorf("%w: %w", errAborted, why) })
		t.forget()
		return
	}
	t.fate.Lock()
	aborts := len(t.failed) > 0
	t.fate.Unlock()
	if aborts {
		t.complete(t.aborted)
	} else {
		err := t.finish(link, kgo.TryCommit)
		if err == nil {
			t.complete(nil)
			return
		}
		if t.life.Err() != nil {
			err = fmt.Errorf("%w: %w", driver.ErrClosed, err)
		}
		why := doubtful(err)
		t.complete(func(*driver.Message) error { return why })
	}
	t.lost = t.lost || t.finish(link, kgo.TryAbort) != nil
	t.forget()
}

// finish ends a transaction, in no more time than a message may take. A client interrupted in this
// is no longer usable.
func (t *transactor) finish(link *kafkaconn.Link, how kgo.TransactionEndTry) error {
	ctx, cancel := context.WithTimeout(t.life, t.conn.cfg.DeliveryTimeout)
	defer cancel()
	err := link.EndTransaction(ctx, how)
	t.lost = ctx.Err() != nil
	return err
}

// forget clears the failures before a transaction.
func (t *transactor) forget() {
	t.fate.Lock()
	defer t.fate.Unlock()
	clear(t.failed)
}

// doubtful returns the error of a failed commit for the messages of its transaction.
func doubtful(err error) error {
	if errors.Is(err, kerr.OperationNotAttempted) || errors.Is(err, kerr.TransactionAbortable) {
		return fmt.Errorf("%w: %w", errAborted, kafkaconn.Cause(err))
	}
	if err = kafkaconn.Cause(err); !driver.IsContract(err) {
		err = fmt.Errorf("%w: %w", driver.ErrTimeout, err)
	}
	return fmt.Errorf("whether the transaction was committed is not known: %w", err)
}

// aborted returns why a message of an aborted transaction failed.
func (t *transactor) aborted(m *driver.Message) error {
	t.fate.Lock()
	defer t.fate.Unlock()
	if err := t.failed[m]; err != nil {
		return fmt.Errorf("%w: %w", errAborted, err)
	}
	return fmt.Errorf("%w, as another message of it failed", errAborted)
}

// complete completes the batch; a nil why means that it was committed.
func (t *transactor) complete(why func(*driver.Message) error) {
	for _, m := range t.batch {
		var err error
		if why != nil {
			err = why(m)
		}
		t.done.Complete(m, err)
	}
	t.turn.Lock()
	defer t.turn.Unlock()
	t.open -= len(t.batch)
	clear(t.batch)
	t.batch = t.batch[:0]
	t.turn.Changed()
}

// begin begins a transaction, with a new client if the current one has failed permanently. It tries
// for as long as a message may take.
func (t *transactor) begin() (*kafkaconn.Producer, error) {
	if inner := t.current(); !t.lost && inner.Link.BeginTransaction() == nil {
		return inner, nil
	}
	ctx, cancel := context.WithTimeout(t.life, t.conn.cfg.DeliveryTimeout)
	defer cancel()
	for {
		over, end := context.WithCancel(ctx)
		end()
		_ = t.current().Close(over)
		next, err := t.connect(ctx)
		if err == nil {
			t.turn.Lock()
			t.inner = next
			t.turn.Unlock()
			if err = next.Link.BeginTransaction(); err == nil {
				t.lost = false
				return next, nil
			}
		}
		if !retry.Pause(ctx, recoverPause) {
			return nil, fmt.Errorf("%w: none could begin: %w", errAborted, kafkaconn.Cause(err))
		}
	}
}

func (t *transactor) current() *kafkaconn.Producer {
	t.turn.Lock()
	defer t.turn.Unlock()
	return t.inner
}

func (t *transactor) Flush(ctx context.Context) error {
	t.turn.Lock()
	defer t.turn.Unlock()
	return t.turn.Wait(ctx, func() bool { return t.open == 0 })
}

// Close waits for transactions in progress, within ctx and 2 s. The rest is not committed, unless a
// commit was already in progress.
func (t *transactor) Close(ctx context.Context) error {
	t.turn.Lock()
	closed := t.closed
	t.closed = true
	t.turn.Unlock()
	if closed {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	_ = t.Flush(short)
	t.end()
	for ended := false; !ended; {
		t.current().Link.Close(ctx) // ends loop's waits
		select {
		case <-t.stopped:
			ended = true
		case <-time.After(recoverPause): // it may have created a new client meanwhile
		}
	}
	return t.current().Close(ctx)
}
