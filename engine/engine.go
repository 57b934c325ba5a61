// Package engine executes one worker of one run: it opens the system, hands messages over on their
// schedule (or as fast as they complete), takes deliveries, and returns raw counts and histograms.
//
// It is independent of particular drivers, reads no flags, prints nothing, and computes no
// statistics. ARCHITECTURE.md follows one message through it.
package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/wire"
	"github.com/weirmq/weir/measure"
)

// Every wait of a run is limited.
const (
	setupLimit = 60 * time.Second // opening everything and every subscription becoming ready
	closeLimit = 10 * time.Second // closing producers, consumers, connection, removing destinations
	probeLimit = 3 * time.Second  // asking after the drain whether the system still answers
	stallLimit = 10 * time.Second // minimum time without a confirmation after which a closed loop counts as stalled
	mergeEvery = 2 * time.Millisecond
	hurryLimit = 300 * time.Millisecond // for each step of closing when the user aborts
	awayLimit  = 5 * time.Second        // and for all steps together when the system does not answer
	askLimit   = 500 * time.Millisecond // asking the system for its backlog
	graceLimit = time.Second            // beyond a limit that was ignored
	openAtOnce = 32                     // producers and consumers opened at a time
)

// never is an instant that no run reaches.
const never = int64(1) << 62

// run is the state of one worker.
type run struct {
	*shape
	peers    Peers
	clock    atomic.Pointer[pace.Clock] // its epoch is the run's from the start on; consumers run earlier
	unfollow func() pace.Followed       // ends the comparison of the clock's counter
	recorder *measure.Recorder
	ledger   *ledger.Ledger
	errs     tally
	negative [measure.NumPhases]Negative // owned by the merge
	part     ledger.Part                 // owned by the merge, for OnLedger

	bodies *bodies
	direct bool // the pacer itself calls Publish
	inline bool // and Publish may block it

	conn        driver.Conn
	backlogger  driver.Backlogger // conn, if there are consumers
	facts       driver.Facts
	wire        *wire.Recorder              // nil: kernel instants are not recorded
	wireMissing string                      // why not, if they are wanted
	sockets     wire.Sockets                // before the system was opened, if they are wanted
	met         bool                        // all workers are open
	adopt       atomic.Pointer[ledger.Part] // what all workers received, until the merge takes it
	echoes      []*echo                     // of each consumer of requests
	senders     []*sender
	pacers      []*pacer
	receivers   [][]*receiver

	outer     context.Context // the caller's
	sending   context.Context // ends when nothing more may be handed over
	endSend   context.CancelFunc
	receiving context.Context
	endRecv   context.CancelFunc
	work      sync.WaitGroup // pacers and senders
	consuming sync.WaitGroup

	stop         atomic.Bool                        // offer no further message of the plan
	stopped      atomic.Int64                       // when stop was set
	stopCh       chan struct{}                      // closed with stop
	ended        atomic.Bool                        // the drain is over: completions no longer count
	late         atomic.Pointer[ledger.Ledger]      // of deliveries after that; nil before
	lateCame     int                                // number of late deliveries; owned by the merge
	deadReceiver atomic.Pointer[deadLetterReceiver] // nil: no dead letters
	claimed      atomic.Uint64                      // closed loop with a count: messages taken by producers
	failed       atomic.Pointer[string]
	gone         atomic.Pointer[error]
	back         []atomic.Int64 // by subscription: when a consumer was last reported as reconnected, ns since the epoch
	away         atomic.Int64   // since when the system has not answered, ns since the epoch; 0: it does
	stall        stallDetector
	blocks       blocks
	pausing      *pausing // nil: consumers are not paused

	watchNext atomic.Int64 // earliest instant of the next sampled call of a producer's goroutine

	progress atomic.Uint64 // messages completed, as of the collector's last reading
	lay      uint64        // mode Backlog: confirmed and not delivered when the consumers started
	full     bool          // mode Backlog: the system accepted no more by then
	emptying int64         // when consumers started; 0 before

	asking   atomic.Bool // the drain waits for complete
	complete atomic.Bool // set by the merge after asking: nothing is missing
}

func itoa(n int) string { return strconv.Itoa(n) }

// Execute runs this process's part, cfg.Worker, together with its peers, and returns what it knows
// of the run. When stop is closed, no further message is offered and the run drains; when ctx ends,
// the run ends at once. Either way it returns what was measured. An error means that there is no
// result: the system could not be opened (driver's sentinels), a subscription did not become ready
// (ErrNotReady), the guarantee is too weak (ErrGuarantee), a peer failed (its own error), or the
// driver broke its contract (ErrContract, with figures).
func Execute(ctx context.Context, stop <-chan struct{}, cfg Config, peers Peers) (*WorkerResult, error) {
	sh, err := newShape(cfg)
	if err != nil {
		return nil, err
	}
	r := &run{shape: sh, peers: peers, stopCh: make(chan struct{}), back: make([]atomic.Int64, sh.subscriptions())}
	r.stopped.Store(never)
	r.clock.Store(cfg.Clock)
	if cfg.Pacers == 0 {
		r.cfg.Pacers = cfg.pacers(pace.Cores())
	}
	// Publish may block a pacer that has a single producer: no other producer is delayed.
	blocks := cfg.Definition.Capabilities.PublishBlocks
	r.inline = blocks && r.assigned.producers() <= r.cfg.Pacers
	r.direct = !blocks || r.inline
	r.outer = ctx
	r.sending, r.endSend = context.WithCancel(ctx)
	r.receiving, r.endRecv = context.WithCancel(context.WithoutCancel(ctx))
	defer r.endSend()
	defer r.endRecv()

	r.unfollow = func() pace.Followed { return pace.Followed{} }
	if !r.virtual() {
		r.unfollow = cfg.Clock.Follow(func(why string) { r.event("clock", why+": weir reads CLOCK_MONOTONIC from here on") })
	}
	defer r.unfollow()
	defer r.tuneRuntime()()
	if cfg.Wire {
		r.sockets = wire.Opened()
	}
	if err := r.open(ctx, stop); err != nil {
		r.release()
		return nil, err
	}
	r.quieten()
	r.openWire()
	return r.execute(ctx, stop)
}

func (r *run) event(kind, text string) {
	if r.cfg.OnEvent != nil {
		r.cfg.OnEvent(Event{At: r.since(), Kind: kind, Text: text})
	}
}

// since returns now; 0 before the epoch is known.
func (r *run) since() int64 {
	if c := r.clock.Load(); c != r.cfg.Clock {
		return c.Now()
	}
	return 0
}

// now returns ns since the run's epoch.
func (r *run) now() int64 { return r.clock.Load().Now() }

// halt stops offering messages; the drain follows.
func (r *run) halt() {
	// Set the instant first: readers of the flag rely on it.
	if r.stopped.CompareAndSwap(never, r.now()) {
		r.stop.Store(true)
		close(r.stopCh)
	}
}

// fail ends the run at once, for a reason in the scenario.
func (r *run) fail(why string) {
	if r.failed.CompareAndSwap(nil, &why) {
		r.event("failed", why)
	}
	r.halt()
}

// lose ends the run because the system is gone for good.
func (r *run) lose(err error) {
	if r.gone.CompareAndSwap(nil, &err) {
		r.event("gone", err.Error())
	}
	r.halt()
}

// claim takes up to n of the messages that this worker of a counted closed loop still has.
func (r *run) claim(n int) int {
	limit := r.messages
	for {
		c := r.claimed.Load()
		if c >= limit {
			return 0
		}
		k := min(uint64(n), limit-c)
		if r.claimed.CompareAndSwap(c, c+k) {
			return int(k)
		}
	}
}

// tuneRuntime adds a P for each pacer, or applies the configured number, and tunes the garbage
// collector. It returns the function that undoes both.
func (r *run) tuneRuntime() func() {
	if r.virtual() {
		return func() {} // leave the process as it is
	}
	procs := runtime.GOMAXPROCS(r.cfg.Procs())
	percent := debug.SetGCPercent(100)
	return func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
	}
}

// virtual reports whether the run uses virtual time.
func (r *run) virtual() bool { return r.cfg.Calibration.Samples == 0 }

// quieten makes garbage collections rare: one when the heap, now that all is open, has grown by
// quietHeap or by half, whichever is more. A client library's garbage fills that within seconds at
// full rate, so that the process stays small and collections stay seldom.
func (r *run) quieten() {
	if r.virtual() {
		return
	}
	const quietHeap = 32 << 20
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetGCPercent(max(50, int(100*quietHeap/max(m.HeapAlloc, 1<<20))))
}

// open connects, declares destinations, and opens consumers (until all are ready) and producers.
// release closes them, also after an error.
func (r *run) open(ctx context.Context, stop <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, setupLimit)
	defer cancel()
	defer cancelOn(ctx, stop, cancel)() // nothing is measured yet, so there is nothing to drain
	cfg := &r.cfg
	served := driver.Run{ID: cfg.RunID, Log: cfg.Log, Existing: cfg.Names != nil, Block: r.block, Event: r.event, Back: r.isBack}
	conn, err := bounded(ctx, func(ctx context.Context) (driver.Conn, error) {
		return driver.Open(ctx, cfg.Definition, cfg.Options, served)
	}, closeLate[driver.Conn])
	if err != nil {
		return fmt.Errorf("opening %s: %w", cfg.Definition.Name, r.identify(ctx, err))
	}
	r.conn = conn
	var can bool
	if r.backlogger, can = conn.(driver.Backlogger); !can && r.subscriptions() > 0 {
		return fmt.Errorf("%w: it has consumers and does not report their remaining messages", ErrContract)
	}
	if r.declares() {
		_, err := bounded(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, conn.Declare(ctx, r.destinations()...) }, nil)
		if err != nil {
			return fmt.Errorf("declaring %d destinations: %w", len(r.names)+len(r.replyNames), err)
		}
	}
	agreed, err := r.peers.Meet(ctx, Declared, r.hands())
	if err != nil {
		return err
	}
	own := r.ownConsumers()
	counts := make([]int, len(own))
	for sub := range own {
		counts[sub] = len(own[sub])
	}
	r.receivers = make([][]*receiver, len(own))
	r.pausing = newPausing(r)
	r.ledger = ledger.New(ledger.Config{Streams: r.plan.Streams(), Consumers: counts, From: r.from})
	r.recorder = measure.NewRecorder(r.recorderConfig())
	r.recall()
	if cfg.Mode == Consume {
		if err := r.fixEpoch(agreed); err != nil { // the first delivery may come as soon as a consumer runs
			return err
		}
		return r.openEnds(ctx, len(own))
	}
	if err := r.openDeadLetters(ctx); err != nil {
		return err
	}
	if err := r.openEnds(ctx, len(own)); err != nil {
		return err
	}
	return r.openProducers(ctx)
}

// declares reports whether this worker creates and removes the run's destinations.
func (r *run) declares() bool { return r.cfg.Names == nil && !r.assigned.Follows }

func (r *run) destinations() []driver.Destination {
	ds := r.deadLetters()
	for _, n := range r.names {
		ds = append(ds, driver.Destination{Name: n, Partitions: max(1, r.cfg.Partitions), Replicas: max(1, r.cfg.Replicas), Refusals: r.cfg.DeadLetter})
	}
	for _, n := range r.replyNames { // one consumer each: partitions would serve no purpose
		ds = append(ds, driver.Destination{Name: n, Partitions: 1, Replicas: max(1, r.cfg.Replicas)})
	}
	return ds
}

// subscribe opens the consumers of subscriptions [from, to) and, except in mode Backlog, runs them
// and waits until all are ready.
func (r *run) subscribe(ctx context.Context, from, to int) error {
	cfg := &r.cfg
	for sub := from; sub < to; sub++ {
		for n, i := range r.ownConsumers()[sub] {
			k := &receiver{run: r, index: i, reader: r.ledger.Reader(sub, n), ready: make(chan struct{}), done: make(chan struct{}), apart: r.apart()}
			if k.apart && cfg.Mode != Backlog && cfg.Mode != Consume {
				k.since = r.from
			}
			spec := driver.ConsumerSpec{Index: i, Subscription: r.subscription(sub), Prefetch: cfg.Prefetch, Settle: cfg.Settle, From: cfg.From, Durable: cfg.Durable != ""}
			open := r.openConsumer
			switch {
			case r.isReplies(sub):
				k.shard, k.owner = r.recorder.Replier(i), i
				spec.Destinations, open = r.replyNames[i:i+1], r.conn.Consumer
			default:
				k.shard, k.owner = r.recorder.Receiver(sub*cfg.Consumers+i), anybody
				k.worker = newWorker(cfg.Work)
				k.refusing.begin(cfg.Refuse, cfg.Plan.Seed, sub, i)
				k.serves = r.served(i)
				for _, d := range k.serves {
					spec.Destinations = append(spec.Destinations, r.names[d])
				}
				if r.echoing {
					k.echo = r.echoes[n]
				}
			}
			c, err := bounded(ctx, func(ctx context.Context) (driver.Consumer, error) { return open(ctx, spec) }, closeLate[driver.Consumer])
			if err != nil {
				return fmt.Errorf("opening consumer %d of subscription %d: %w", i, sub, err)
			}
			k.consumer = c
			k.open = func(ctx context.Context) (driver.Consumer, error) { return open(ctx, spec) }
			r.receivers[sub] = append(r.receivers[sub], k)
			if cfg.Mode != Backlog {
				r.consume(k, sub, k)
			}
		}
	}
	if cfg.Mode == Backlog {
		return nil
	}
	return r.awaitReady(ctx, from, to)
}

// consume runs a consumer of a subscription.
func (r *run) consume(k *receiver, sub int, sink driver.Sink) {
	k.running = true
	ctx := r.receiving
	if r.cfg.Churn > 0 {
		ctx, k.leave = context.WithCancel(ctx)
	}
	r.consuming.Go(func() {
		defer close(k.done)
		err := k.consumer.Run(ctx, sink)
		if err == nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: Run returned nil before its context ended", ErrContract)
		}
		if err != nil {
			k.Fault(err)
			r.lose(fmt.Errorf("consumer %d of subscription %d: %w", k.index, sub, err))
		}
	})
}

// awaitReady waits until the consumers of subscriptions [from, to) are ready.
func (r *run) awaitReady(ctx context.Context, from, to int) error {
	for sub := from; sub < to; sub++ {
		for _, k := range r.receivers[sub] {
			select {
			case <-k.ready:
			case <-k.done:
				if e := r.gone.Load(); e != nil {
					return fmt.Errorf("%w: %w", ErrNotReady, *e)
				}
				return fmt.Errorf("consumer %d of subscription %d ended: %w", k.index, sub, ErrNotReady)
			case <-ctx.Done():
				return fmt.Errorf("consumer %d of subscription %d: %w: %w", k.index, sub, ErrNotReady, context.Cause(ctx))
			}
		}
	}
	return nil
}

// subscription returns the name of a subscription.
func (r *run) subscription(sub int) string {
	if r.cfg.Durable != "" {
		return r.cfg.Durable
	}
	return r.cfg.RunID + "-s" + itoa(sub)
}

// served returns the destinations of a subscription's consumer i: consumers are spread over the
// destinations; if there are fewer consumers, each serves several.
func (r *run) served(i int) []int {
	if r.cfg.Consumers >= len(r.names) {
		return []int{i % len(r.names)}
	}
	var own []int
	for d := i; d < len(r.names); d += r.cfg.Consumers {
		own = append(own, d)
	}
	return own
}

// openProducers opens producers several at a time: a thousand sequential connects take long.
func (r *run) openProducers(ctx context.Context) error {
	cfg := &r.cfg
	pacers := cfg.Pacers
	if r.closed() {
		pacers = 1
	}
	own := r.assigned.ownProducers()
	for i := range pacers {
		l := &pacer{run: r, first: -1, part: r.assigned.pacer(i, pacers), shard: r.recorder.Sender(i), pool: newChunkPool((len(own) - i + pacers - 1) / pacers)}
		r.pacers = append(r.pacers, l)
	}
	r.bodies = newBodies(cfg.Payload, cfg.Plan.Seed, r.sizes)
	r.senders = make([]*sender, len(own))
	for n, p := range own {
		l := r.pacers[n%pacers]
		s := newSender(r, p, l.pool)
		r.senders[n] = s
		l.senders = append(l.senders, s)
	}
	errs := make([]error, len(r.senders))
	var wg sync.WaitGroup
	gate := make(chan struct{}, openAtOnce)
	for n, s := range r.senders {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			if ctx.Err() != nil {
				errs[n] = ctx.Err()
				return
			}
			s.producer, errs[n] = bounded(ctx, func(ctx context.Context) (driver.Producer, error) { return r.openProducer(ctx, s.spec(), s) }, closeLate[driver.Producer])
			if can := cfg.Definition.Capabilities; cfg.Plan.BatchMax > 1 && can.Batch && errs[n] == nil {
				b, ok := s.producer.(driver.BatchProducer)
				if !ok {
					errs[n] = fmt.Errorf("batches: %w", driver.ErrUnsupported)
				}
				s.batcher = b
			}
		})
	}
	wg.Wait()
	for n, err := range errs {
		if err != nil {
			return fmt.Errorf("opening producer %d: %w", own[n], err)
		}
	}
	return nil
}

// release closes whatever open opened and is still open, and removes what it declared. Each step
// has its own limit, so that one that hangs does not use up the next one's time. A failure is an
// event, not an error: the figures stand.
func (r *run) release() {
	r.endSend()
	r.closeProducers()
	r.closeConsumers()
	r.closeDeadLetters()
	r.closeEchoes()
	if r.conn == nil {
		return
	}
	// The worker that removes the destinations waits until no other worker uses them. If the others
	// do not arrive, one of them removes them.
	var removes atomic.Bool // the step may outlive its limit
	removes.Store(r.declares() && !r.met)
	if r.met {
		r.step("waiting for the other parts", func(ctx context.Context) error {
			agreed, err := r.peers.Meet(ctx, Left, r.hands())
			removes.Store(err == nil && r.cfg.Names == nil && (r.declares() || agreed.Removes))
			return err
		})
	}
	if removes.Load() {
		r.step("removing destinations", func(ctx context.Context) error { return r.conn.Delete(ctx, r.destinations()...) })
	}
	r.step("closing the connection", r.conn.Close)
}

// step runs one cleanup step within closeLimit, even if it ignores its context.
func (r *run) step(what string, do func(context.Context) error) { r.stepIn(r.closeLimit(), what, do) }

// stepIn is step with another limit.
func (r *run) stepIn(limit time.Duration, what string, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.sending), limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(min(graceLimit, limit)):
			err = errors.New("did not return")
		}
	}
	if err != nil && r.errs.first(what) {
		r.event("cleanup", what+": "+err.Error())
	}
}

// closeAll closes many of a kind, several at a time. They share one closeLimit; after it each has
// only a moment, so that a thousand connections to an unresponsive system do not take a thousand
// limits.
func (r *run) closeAll(what string, closes []func(context.Context) error) {
	began := r.now()
	var wg sync.WaitGroup
	gate := make(chan struct{}, openAtOnce)
	for _, do := range closes {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			r.stepIn(max(hurryLimit, r.closeLimit()-time.Duration(r.now()-began)), what, do)
		})
	}
	wg.Wait()
}

// closeLimit returns the limit of a closing step.
func (r *run) closeLimit() time.Duration {
	switch {
	case r.outer.Err() != nil:
		return hurryLimit
	case r.away.Load() > 0:
		return max(hurryLimit, awayLimit-time.Duration(r.now()-r.away.Load()))
	}
	return closeLimit
}

// closeProducers closes the producers once.
func (r *run) closeProducers() {
	var open []func(context.Context) error
	for _, s := range r.senders {
		if s != nil && s.producer != nil && !s.shut {
			s.shut = true
			open = append(open, s.producer.Close)
		}
	}
	r.closeAll("closing a producer", open)
}

// closeConsumers stops and closes the consumers once.
func (r *run) closeConsumers() {
	r.endRecv()
	var open []func(context.Context) error
	for sub := range r.receivers {
		for _, k := range r.receivers[sub] {
			if k.shut {
				continue
			}
			k.shut = true
			if !k.running {
				close(k.done)
			}
			open = append(open, func(ctx context.Context) error {
				select {
				case <-k.done:
				case <-ctx.Done():
					return fmt.Errorf("consumer %d of subscription %d did not stop", k.index, sub)
				}
				return k.consumer.Close(ctx)
			})
		}
	}
	r.closeAll("closing a consumer", open)
}
