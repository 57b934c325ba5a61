package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/measure"
)

// execute executes the opened run: it checks the guarantee, starts everything at one instant,
// drains, closes, and gathers.
func (r *run) execute(ctx context.Context, stop <-chan struct{}) (*WorkerResult, error) {
	agreed, err := r.agree(ctx, stop)
	if err == nil && r.cfg.Mode != Consume {
		err = r.fixEpoch(agreed)
	}
	if err != nil {
		r.stopWire()
		r.release()
		return nil, err
	}
	part := &WorkerResult{Facts: r.facts, Pacers: len(r.pacers)}
	clock := r.clock.Load()
	part.Epoch = clock.Epoch()
	if r.cfg.OnStart != nil {
		r.cfg.OnStart(part.Epoch)
	}
	r.startWire(clock)
	meter := host.StartMeter(clock)
	before := meter.Read()
	var stalls stalls
	stopHiccups := func() {}
	if r.cfg.Calibration.Samples > 0 {
		stopHiccups = host.StartHiccups(clock, betweenMessages(&r.cfg.Plan), host.HiccupPeriod, func(at, overshoot int64) {
			r.recorder.Hiccup(at-overshoot, overshoot)
			if r.wire != nil {
				r.wire.Woke(at, overshoot)
			}
			stalls.wake(at, overshoot)
		})
	}

	var side sync.WaitGroup
	merging, endMerge := context.WithCancel(context.WithoutCancel(ctx))
	side.Go(func() { r.merge(merging) })
	collecting, endCollect := context.WithCancel(context.WithoutCancel(ctx))
	c := &collector{run: r, gc: host.NewGCEvents()}
	side.Go(func() { c.loop(collecting) })

	r.start()
	churning := newChurning(r)
	window := r.offer(ctx, stop)
	part.Churned = churning.end()
	r.pausing.end(r.now())
	if r.cfg.Mode == Backlog {
		r.empty(ctx, stop)
	} else {
		r.event("phase", "drain")
		r.drain(ctx)
		r.emptyDeadLetters(ctx)
	}
	part.Interrupted = latch.Closed(stop) || ctx.Err() != nil

	part.Silence = r.silence()
	part.Blocks = r.blocks.until(r.now())
	// From here on nothing is measured, and deliveries are late.
	r.halt()
	r.expectLate()
	r.ended.Store(true)
	part.Wire = r.stopWire()
	part.Ended = r.now()
	stopHiccups()
	part.Calibration = r.cfg.Calibration.Read(clock, r.unfollow)
	part.Stalls = stalls.longest()
	part.Host = meter.Read().Since(before)
	part.Gone = r.probe(ctx, part)
	if part.Silence.Silent && part.Gone == nil {
		ctx, cancel := probing(ctx)
		part.Silence.Silent = !r.answers(ctx)
		cancel()
	}
	if part.Gone != nil || part.Silence.Silent {
		r.away.Store(max(1, r.now()))
	} else if r.cfg.Mode == Consume && r.firstDelivery() == never {
		part.Left = r.left()
	}
	if part.Gone == nil {
		part.Listened = r.listen(ctx, stop)
	}
	// Stop all senders and consumers.
	r.endSend()
	// Close must not be called before Publish has returned everywhere: one goroutine at a time.
	stuck := !r.leave()
	r.closeProducers()
	r.closeConsumers()
	r.closeDeadLetters()
	r.closeEchoes()
	endMerge()
	endCollect()
	side.Wait()
	r.unsent()
	c.last(part.Ended)
	r.gather(part, window)
	r.release()
	if stuck {
		return part, fmt.Errorf("%w: Publish did not return within %v of its context's end", ErrContract, closeLimit)
	}
	for _, s := range r.senders {
		if n := s.twice.Load(); n > 0 {
			return part, fmt.Errorf("%w: producer %d completed %d messages that it did not have", ErrContract, s.index, n)
		}
	}
	for _, e := range r.echoes {
		if n := e.twice.Load(); n > 0 {
			return part, fmt.Errorf("%w: the producer of replies %d completed %d that it did not have", ErrContract, e.index, n)
		}
	}
	return part, nil
}

// agree reads the running system's settings, compares them with the demanded guarantee, and meets
// the other workers.
func (r *run) agree(ctx context.Context, stop <-chan struct{}) (Agreed, error) {
	ctx, cancel := context.WithTimeout(ctx, setupLimit)
	defer cancel()
	defer cancelOn(ctx, stop, cancel)()
	var err error
	if r.facts, err = bounded(ctx, r.conn.Facts, nil); err != nil {
		return Agreed{}, fmt.Errorf("reading the system's settings: %w", err)
	}
	if g := r.facts.Confirms.Guarantee; g < r.cfg.Guarantee {
		return Agreed{}, fmt.Errorf("%w: the running system confirms %q; the scenario demands at least %q", ErrGuarantee, g, r.cfg.Guarantee)
	}
	if r.cfg.OnOpen != nil && !r.assigned.Follows {
		r.cfg.OnOpen(r.conn.Facts)
	}
	agreed, err := r.peers.Meet(ctx, Opened, r.hands())
	r.met = err == nil
	return agreed, err
}

// cancelOn calls cancel when stop is closed, until undone.
func cancelOn(ctx context.Context, stop <-chan struct{}, cancel context.CancelFunc) (undo func()) {
	ctx, end := context.WithCancel(ctx)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return end
}

// wait waits for wg until ctx ends.
func wait(ctx context.Context, wg *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// fixEpoch adopts the agreed instant as the run's epoch.
func (r *run) fixEpoch(agreed Agreed) error {
	if agreed.EpochNS == 0 {
		return errors.New("the parts agreed on no epoch")
	}
	r.clock.Store(r.cfg.Clock.At(agreed.EpochNS))
	return nil
}

// leave waits until all hand-overs have stopped. A pacer that still counts its remainder gets the
// time: at most mostWalked messages.
func (r *run) leave() bool {
	for {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.sending), r.closeLimit())
		left := wait(ctx, &r.work)
		cancel()
		if left {
			return true
		}
		walking := false
		for _, l := range r.pacers {
			walking = walking || l.walking.Load()
		}
		if !walking {
			return false
		}
	}
}

// start starts the pacers and the producers' goroutines. The epoch lies ahead, so that all are
// ready in time.
func (r *run) start() {
	switch {
	case r.cfg.Mode == Consume:
	case r.closed():
		begin := time.Duration(-r.now())
		for _, s := range r.senders {
			r.work.Go(func() {
				time.Sleep(begin)
				s.closedLoop(r.sending)
			})
		}
	default:
		if !r.direct {
			for _, s := range r.senders {
				r.work.Go(func() { s.work(r.sending) })
			}
		}
		for _, l := range r.pacers {
			l.waiter = pace.NewWaiter(r.clock.Load(), r.cfg.Calibration)
			r.work.Go(l.pace)
		}
	}
}

// offer waits for the end of the plan (closed loop: the window or the count) or until the run is
// stopped, and returns the state at the cut if the window was cut short.
func (r *run) offer(ctx context.Context, stop <-chan struct{}) *cut {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	r.event("phase", "warmup")
	measuring := false
	stall := stall{limit: int64(max(r.cfg.Drain, stallLimit))}
	var st Status
	for {
		r.status(&st, false)
		o := r.peers.Orders(&st)
		if o.Stop {
			r.obey(o)
		}
		now := r.now()
		r.pausing.look(now, o.Resume)
		if !measuring && now >= r.from {
			measuring = true
			r.event("phase", "measure")
		}
		switch {
		case r.cfg.Mode == Consume:
		case !r.closed():
			// A pacer blocked by its only producer has until the end of a drain, unless it may be
			// waiting for the consumers to start.
			if now >= r.to && (r.offered() || r.cfg.Mode == Backlog || now >= r.to+int64(r.cfg.Drain)) {
				return nil
			}
		case now >= r.to, r.cfg.Messages > 0 && r.offered() && r.outstanding() == 0:
			r.halt()
		case stall.since(now, r.progress.Load()):
			why := "the system confirmed nothing for " + time.Duration(stall.limit).String()
			if b := r.blocks.until(now); len(b) > 0 && b[len(b)-1].Open {
				why += ": it takes no messages (" + b[len(b)-1].Why + ")"
			}
			r.fail(why)
		}
		select {
		case <-ctx.Done():
			r.halt()
		case <-stop:
			r.halt()
		case <-r.stopCh:
			for _, s := range r.senders {
				s.rouse() // wake a closed loop that waits for a slot
			}
			if at := r.stopped.Load(); at < r.to {
				var s measure.Snapshot
				r.recorder.Read(now, &s)
				return &cut{max(at, r.from), s.Window, r.recorder.Stages()}
			}
			return nil
		case <-tick.C:
		}
	}
}

// A stall detects that a figure has not changed for longer than limit.
type stall struct {
	limit, changed int64
	figure         uint64
}

func (s *stall) since(now int64, figure uint64) bool {
	if figure != s.figure {
		s.figure, s.changed = figure, now
	}
	return now-s.changed > s.limit && now > s.limit
}

// offered reports whether every pacer (closed loop: producer) has reached the end of the plan;
// backlogs may still be worked off.
func (r *run) offered() bool {
	for _, s := range r.senders {
		if !s.closed.Load() && !s.finished.Load() {
			return false
		}
	}
	return true
}

// obey stops offering messages because of a decision for all workers.
func (r *run) obey(o Orders) {
	if o.Why != "" && r.failed.Load() == nil && r.gone.Load() == nil && !r.stop.Load() {
		r.event("stopped", o.Why)
	}
	r.halt()
}

// firstDelivery returns the instant of the first delivery to any consumer.
func (r *run) firstDelivery() int64 {
	first := never
	for _, ks := range r.receivers {
		for _, k := range ks {
			if at := k.first.Load(); at > 0 {
				first = min(first, at)
			}
		}
	}
	return first
}

// lastDelivery returns the instant of the latest delivery to any consumer.
func (r *run) lastDelivery() (last int64) {
	for _, ks := range r.receivers {
		for _, k := range ks {
			last = max(last, k.last.Load())
		}
	}
	return last
}

// outstanding returns how many messages are handed over and not completed, plus one for each
// unfinished sender.
func (r *run) outstanding() (n uint64) {
	for _, s := range r.senders {
		if !s.finished.Load() {
			n++
			continue
		}
		n += uint64(len(s.slots) - s.free.len() - len(s.taken)) // taken: gathered for a batch that was never sent
	}
	return n
}

// drain waits until the drain is over or ctx ends. If the latest messages failed without an answer,
// the system may be coming back: then, up to the limit, the drain is not over until the system
// answers.
func (r *run) drain(ctx context.Context) {
	var st Status
	var back atomic.Bool
	var side sync.WaitGroup
	defer side.Wait()
	asking, end := context.WithCancel(ctx)
	defer end()
	waits := false
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		r.status(&st, true)
		if st.Open == 0 {
			r.asking.Store(true) // no confirmation comes from here on
			if !waits && r.stall.away() {
				waits = true
				side.Go(func() { back.Store(r.awaitAnswer(asking)) })
			}
		}
		if waits && !back.Load() {
			st.Open++
		}
		if r.peers.Orders(&st).Over || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// isBack notes that a consumer of that subscription has reconnected.
func (r *run) isBack(subscription string) {
	for sub := range r.back {
		if r.subscription(sub) == subscription {
			r.back[sub].Store(r.now())
		}
	}
}

// isCut reports whether a consumer of the subscription lost its connection, has received nothing
// since, and none has reconnected: after the load there may be nothing to receive.
func (r *run) isCut(sub int) bool {
	back := r.back[sub].Load()
	for _, k := range r.receivers[sub] {
		if k.cut.Load() > max(k.last.Load(), back) {
			return true
		}
	}
	return false
}

// holdsNothing asks the system whether the subscription has nothing left to deliver; answered is
// false if the system does not answer.
func (r *run) holdsNothing(sub int) (nothing, answered bool) {
	n, err := r.backlogOf(sub)
	return n == 0 && err == nil, err == nil
}

// backlogOf asks the system for the backlog of a subscription.
func (r *run) backlogOf(sub int) (uint64, error) {
	ctx, cancel := context.WithTimeout(r.sending, askLimit)
	defer cancel()
	return r.backlogIn(ctx, sub)
}

func (r *run) backlogIn(ctx context.Context, sub int) (uint64, error) {
	names := r.names
	if r.isReplies(sub) {
		names = r.replyNames
	}
	return bounded(ctx, func(ctx context.Context) (uint64, error) {
		return r.backlogger.Backlog(ctx, r.subscription(sub), names)
	}, nil)
}

// left returns the largest backlog of the subscriptions according to the system; nil if it is
// unknown for any of them.
func (r *run) left() *uint64 {
	var most uint64
	for sub := range r.receivers {
		n, err := r.backlogOf(sub)
		if err != nil {
			return nil
		}
		most = max(most, n)
	}
	return &most
}

// probing bounds a question that is asked after the drain.
func probing(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := probeLimit
	if ctx.Err() != nil {
		limit = hurryLimit
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// probe asks the system whether it still answers, and what it has discarded.
func (r *run) probe(ctx context.Context, part *WorkerResult) error {
	if e := r.gone.Load(); e != nil {
		return *e
	}
	ctx, cancel := probing(ctx)
	defer cancel()
	facts, err := bounded(ctx, r.conn.Facts, nil)
	if !answered(err) {
		return fmt.Errorf("asking the system after the drain: %w", err)
	}
	part.Discarded = discardedSince(r.facts.Discarded, facts.Discarded)
	return nil
}

// answers asks a silent system for the backlog of each subscription. Whether it is gone must not
// depend on when the load ended: a system that came back may have had nothing more to confirm. If
// there are consumers, facts do not suffice: a surviving node has them without a quorum that
// accepts messages.
func (r *run) answers(ctx context.Context) bool {
	for sub := range r.subscriptions() {
		if _, err := r.backlogIn(ctx, sub); !answered(err) {
			return false
		}
	}
	return true
}

// answered reports whether the system answered a question; its own errors, such as "stream not
// found", are answers.
func answered(err error) bool {
	for _, no := range []error{
		driver.ErrUnreachable, driver.ErrDisconnected, driver.ErrTimeout, driver.ErrClosed, errHung, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, no) {
			return false
		}
	}
	return true
}

// merge moves deliveries from the consumers' rings into the ledger and the recorder until ctx ends,
// and once more then.
func (r *run) merge(ctx context.Context) {
	shards := make([]*measure.Receiver, len(r.receivers))
	for i := range shards {
		if r.isReplies(i) {
			shards[i] = r.recorder.Replier(0)
		} else {
			shards[i] = r.recorder.Receiver(i)
		}
	}
	first := func(sub int, e *ledger.Event) { delivered(shards[sub], e, e.At) }
	if r.wire != nil && r.cfg.Correct == nil {
		first = func(sub int, e *ledger.Event) {
			delivered(shards[sub], e, e.At)
			r.sampledDelivery(e)
		}
	}
	if r.cfg.Correct != nil {
		first = func(sub int, e *ledger.Event) {
			at := e.At + r.cfg.Correct(e.Stream, e.At)
			r.note(e, at)
			delivered(shards[sub], e, at)
		}
	}
	if p := r.pausing; p != nil {
		plain := first
		first = func(sub int, e *ledger.Event) {
			plain(sub, e)
			at := e.At
			if r.cfg.Correct != nil {
				at += r.cfg.Correct(e.Stream, e.At)
			}
			p.took(sub, e, at)
		}
	}
	if r.cfg.Mode == Backlog || r.cfg.Mode == Consume {
		// The time in a deliberate backlog is not a latency of the system.
		first = func(int, *ledger.Event) {}
	}
	tick := time.NewTicker(mergeEvery)
	defer tick.Stop()
	var reported int64 // last call of OnLedger
	for {
		select {
		case <-ctx.Done():
			r.ledger.Merge(first)
			r.mergeLate()
			r.mergeDeadLetters()
			return
		case <-tick.C:
		case <-r.ledger.Wake():
		}
		r.mergeLate()
		r.mergeDeadLetters()
		asked := r.asking.Load()
		if r.ledger.Merge(first) == 0 && asked {
			r.complete.Store(r.ledger.Complete())
		}
		if p := r.adopt.Swap(nil); p != nil {
			if err := r.ledger.Adopt(p); err != nil {
				r.cfg.Log.Warn("the deliveries of the other parts could not be added", "why", err)
			}
		}
		every := int64(time.Second)
		if r.stop.Load() || asked {
			every = int64(LedgerEvery)
		}
		if now := r.now(); r.cfg.OnLedger != nil && now-reported >= every {
			reported = now
			r.ledger.Part(&r.part)
			r.cfg.OnLedger(now, &r.part)
		}
	}
}

// delivered records a first delivery at the instant at.
func delivered(shard *measure.Receiver, e *ledger.Event, at int64) {
	if shard.Delivered(e.Due, e.Start, at, stamp.Lateness(e.Late, e.Start-e.Due)) {
		shard.Timed(e.Due, e.Start, at, e.Stream, e.Seq)
	}
}

// mergeLate moves late deliveries into their ledger.
func (r *run) mergeLate() {
	if late := r.late.Load(); late != nil {
		r.lateCame += late.Merge(nil)
	}
}

// note counts a delivery that, by the corrected clock, came before it was sent.
func (r *run) note(e *ledger.Event, at int64) {
	if before := e.Start - at; before > 0 {
		n := &r.negative[r.recorder.Phase(e.Due)]
		n.Count++
		n.WorstNS = max(n.WorstNS, before)
	}
}
