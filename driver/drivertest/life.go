package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/latch"
)

// lifeChecks test restarts, isolation and cleanup.
func lifeChecks() []check {
	return []check{
		{
			name: "LostConnectionReported", rule: "A consumer is never silent: an error it recovers from goes to Sink.Fault, one it does not is returned by Run",
			lacks: func(d driver.Definition) string { return lackIf(d.Capabilities.InProcess, "a connection (InProcess)") },
			needs: func(h *Harness) string { return lackIf(h.Cut == nil, "Cut") },
			run:   lostConnectionReported,
		},
		{
			name: "KilledServer", rule: "What Facts call stable outlives the servers, and a producer continues when they are back",
			without: func(h *Harness) string { return lackIf(h.Kill == nil, "Kill") },
			run:     killedServer,
		},
		{
			name: "Existing", rule: "A run of destinations that exist uses them by the names that they have, and leaves them",
			without: func(h *Harness) string { return lackIf(h.Existing == nil, "Existing") },
			run:     existing,
		},
		{name: "RunsIsolated", rule: "The run's ID is the prefix of every name that the driver creates", run: runsIsolated},
		{name: "LeavesNothing", rule: "Delete removes the destinations with everything in them, and Close leaves nothing behind", run: leavesNothing},
	}
}

func lostConnectionReported(e *env) {
	s := e.open()
	s.declare("d")
	x := s.sender("d")
	var r *receiver
	if e.caps.Consume {
		r = s.receive(e.spec("s", "d"), nil)
	}
	x.send(messages("d", "before", 5, 64)...)
	if r != nil && !eventually(func() bool { return len(r.texts()) >= 5 }) {
		e.fatalf("%d of 5 messages were delivered", len(r.texts()))
	}
	if err := e.s.h.Cut(); err != nil {
		e.fatalf("the harness cannot cut the connections: %v", err)
	}
	during := messages("d", "during", 5, 64)
	x.publish(during...)
	if r != nil && !eventually(func() bool { return r.faulted() > 0 || latch.Closed(r.ended) && r.runErr() != nil }) {
		e.errorf("the connection was lost %v ago, Run has returned no error and Fault was not called", patience)
	}
	if r != nil && !eventually(func() bool { _, back := s.back.Load("s"); return back || !r.cut() || latch.Closed(r.ended) }) {
		e.errorf("the connection was lost, Run continues, and no event of its subscription says that it is connected again (Run.For, Reconnect)")
	}
	eventually(func() bool { return x.completed(during, 1) == len(during) })
	_ = e.call("close the producer", x.p.Close)
	for _, m := range during {
		if f := x.fate(m); f.completions != 1 {
			e.under(ruleOnce)
			e.fatalf("a message published when the connection had been lost was completed %d times by the end of Close", f.completions)
		}
	}
}

// killedServer kills the servers and starts them again.
func killedServer(e *env) {
	s := e.open()
	s.declare("d")
	if e.caps.Consume {
		s.receive(e.spec("s", "d"), nil).close() // its subscription keeps what arrives
	}
	x := s.sender("d")
	kept := messages("d", "kept", 20, 64)
	x.send(kept...)
	var f driver.Facts
	e.must("facts", func(ctx context.Context) (err error) {
		f, err = s.conn.Facts(ctx)
		return err
	})
	start := sync.OnceValue(e.s.h.Kill())
	e.cleanup(func() { _ = start() })
	sent := 0
	confirmed := func() bool {
		sent++
		m := messages("d", fmt.Sprint("later-", sent), 1, 64)[0]
		x.publish(m)
		x.await(m)
		return x.fate(m).err == nil
	}
	if !eventually(func() bool { return !confirmed() }) {
		e.errorf("messages are confirmed while no server runs")
	}
	ctx, cancel := context.WithTimeout(e.ctx, 2*askLimit)
	defer cancel()
	if err := e.call("facts", func(context.Context) error { _, err := s.conn.Facts(ctx); return err }); !errors.Is(err, driver.ErrUnreachable) {
		e.errorf("facts while no server runs: %v; want ErrUnreachable", err)
	}
	if err := start(); err != nil {
		e.fatalf("the harness cannot start the servers again: %v", err)
	}
	if !eventually(confirmed) {
		e.errorf("no message is confirmed after the servers are back")
	}
	if !e.caps.Consume || f.Confirms.Stable == driver.StableNone || e.s.seen["Resumes"] == failed {
		return
	}
	r := s.receive(e.spec("s", "d"), nil)
	var missing []string
	if !eventually(func() bool {
		missing, _ = difference(payloads(kept), r.texts())
		return len(missing) == 0
	}) {
		e.errorf("%d of %d messages are missing that were confirmed as %v%s%s", len(missing), len(kept), f.Confirms.Stable, sample(missing), lost([]*receiver{r}))
	}
}

// existing uses the destination of another run by its name.
func existing(e *env) {
	owner := e.open()
	owner.declare("d")
	name := e.s.h.Existing(owner.run, "d")
	run := newRun()
	run.Existing = true
	s := e.openFor(run)
	missing := name + "-missing"
	s.refuses("a producer to a destination that is missing", func(ctx context.Context) error {
		p, err := s.conn.Producer(ctx, driver.ProducerSpec{Destinations: []string{missing}, InFlight: 1}, &sender{})
		if err == nil {
			s.later(p.Close)
		}
		return err
	})
	var r *receiver
	if e.caps.Consume {
		s.refuses("a consumer of a destination that is missing", s.consumer(e.spec("s", missing)))
		r = s.receive(e.spec("s", name), nil)
	}
	ms := messages(name, "existing", 5, 64)
	x := s.sender(name)
	x.send(ms...)
	if r != nil {
		e.expect("a consumer of a destination that exists", payloads(ms), r)
		r.close()
	}
	e.must("close the producer", x.p.Close)
	_ = e.call("close", s.conn.Close)
	owner.sender("d").send(messages("d", "owned", 1, 64)...)
}

func runsIsolated(e *env) {
	a, b := e.open(), e.open()
	a.declare("d")
	b.declare("d")
	var ra, rb *receiver
	if e.caps.Consume {
		ra, rb = a.receive(e.spec("s", "d"), nil), b.receive(e.spec("s", "d"), nil)
	}
	xa, xb := a.sender("d"), b.sender("d")
	ma, mb := messages("d", "run-a", 10, 64), messages("d", "run-b", 10, 64)
	xa.send(ma...)
	xb.send(mb...)
	if ra != nil {
		e.expect("the first of two runs with the same names", payloads(ma), ra)
		e.expect("the second of two runs with the same names", payloads(mb), rb)
	}
	// The end of one run must not end the other.
	e.must("delete", func(ctx context.Context) error { return a.conn.Delete(ctx, plain("d")) })
	more := messages("d", "run-b-more", 5, 64)
	xb.send(more...)
	if ra != nil {
		e.expect("the second of two runs with the same names, when the first one's were deleted", append(payloads(mb), payloads(more)...), rb)
	}
}

func leavesNothing(e *env) {
	ignore := []goleak.Option{goleak.IgnoreCurrent()}
	for _, f := range e.s.h.Goroutines {
		ignore = append(ignore, goleak.IgnoreAnyFunction(f))
	}
	// On goroutines of its own, so that all of its cleanup is done before the look at what is left.
	inner := &recorder{rule: e.rule}
	inner.do(func() { leftOver(newEnv(inner, e.s)) })
	e.adopt(inner.take())
	var leak error
	if !eventually(func() bool {
		leak = goleak.Find(ignore...)
		return leak == nil
	}) {
		e.errorf("goroutines are left %v after Close: %v", patience, leak)
	}
}

// leftOver leaves messages in a subscription, deletes, and checks what a new one of the same names
// receives.
func leftOver(e *env) {
	s := e.open()
	s.declare("d")
	x := s.sender("d")
	if e.caps.Consume {
		s.receive(e.spec("s", "d"), nil).close()
	}
	x.send(messages("d", "left", 20, 64)...)
	e.must("close the producer", x.p.Close) // an unconfirmed message may be under way until then
	e.must("delete", func(ctx context.Context) error { return s.conn.Delete(ctx, plain("d")) })
	if !e.caps.Consume {
		return
	}
	s.declare("d")
	r := s.receive(e.spec("s", "d"), nil)
	e.quiet()
	more := messages("d", "alive", 1, 64)
	s.sender("d").send(more...)
	e.expect("a consumer of the same names, opened after Delete", payloads(more), r)
}

// capabilitiesTrue is the last check: what the driver declares was tested, and what it does not
// declare it rejects.
func capabilitiesTrue() check {
	return check{
		name: "CapabilitiesTrue",
		rule: "What is declared is tested, what is not declared is refused with ErrUnsupported",
		run: func(e *env) {
			e.declaredWasTested()
			e.declaredIsWhole()
			s := e.open()
			s.tryTopology()
			if _, ok := s.conn.(driver.Requester); ok && !e.caps.Requests {
				e.errorf("Requests is not declared, and a %T is a Requester", s.conn)
			}
			s.declare("d")
			s.tryProducer()
			if !e.caps.Consume {
				s.refuses("a consumer, with no consumer side", func(ctx context.Context) error {
					_, err := s.conn.Consumer(ctx, e.spec("s", "d"))
					return err
				})
				return
			}
			s.trySettle()
			s.tryDeliveries()
		},
	}
}

// declaredWasTested fails for a capability with a waived check.
func (e *env) declaredWasTested() {
	c := e.caps
	for _, x := range []struct {
		declared   bool
		name, test string
	}{
		{c.Batch, "Batch", "BatchEqualsSingles"},
		{c.Competing, "Competing", "GroupSplits"},
		{c.Subscriptions, "Subscriptions", "GroupsEachGetAll"},
		{c.Nack, "Nack", "NackRedelivers"},
		{c.DeadLetters, "DeadLetters", "DeadLetters"},
		{c.SettleConfirmed, "SettleConfirmed", "SettleConfirmed"},
		{c.Ordering != driver.Unordered, "Ordering", "Order"},
		{c.MaxPayload > 0, "MaxPayload", "TooLarge"},
		{len(c.Replays) > 0, "Replays", "Replays"},
		{c.Resumes, "Resumes", "Resumes"},
		{c.Requests, "Requests", "RequestReply"},
		{!c.PublishBlocks, "that Publish does not block", "PublishDoesNotBlock"},
	} {
		if x.declared && e.s.seen[x.test] == waived {
			e.errorf("%s is declared, and its check %s waived", x.name, x.test)
		}
	}
}

// declaredIsWhole fails for declarations that contradict each other.
func (e *env) declaredIsWhole() {
	c := e.caps
	if len(c.Guarantees) == 0 {
		e.errorf("no guarantee is declared")
	}
	if c.Consume != (len(c.Settle) > 0) {
		e.errorf("Consume is %v, and the ways of settling are %v", c.Consume, c.Settle)
	}
	if c.DeadLetters && !c.Nack {
		e.errorf("DeadLetters is declared without Nack")
	}
	if !c.Consume && (c.Subscriptions || c.Competing || c.Nack || c.SettleConfirmed || c.Requests || c.Resumes || len(c.Replays) > 0) {
		e.errorf("capabilities of a consumer side are declared without Consume")
	}
	if (c.Nack || c.SettleConfirmed || c.Resumes) && len(acknowledged(c)) == 0 {
		e.errorf("Nack, SettleConfirmed or Resumes is declared, and no way of settling that could carry it: %v", c.Settle)
	}
	if c.Ordering == driver.PerKey && !c.Keys {
		e.errorf("order per key is declared without Keys")
	}
	if c.MaxPayload < 0 {
		e.errorf("MaxPayload is %d", c.MaxPayload)
	}
}

// refuses fails unless f returns ErrUnsupported.
func (s *session) refuses(what string, f func(ctx context.Context) error) {
	if err := s.call(what, f); !errors.Is(err, driver.ErrUnsupported) {
		s.errorf("%s: not refused with ErrUnsupported but: %v", what, err)
	}
}

func (s *session) tryTopology() {
	parts, replicas := plain("p"), plain("r")
	parts.Partitions, replicas.Replicas = 2, 2
	s.declared = append(s.declared, parts, replicas)
	declare := func(d driver.Destination) func(context.Context) error {
		return func(ctx context.Context) error { return s.conn.Declare(ctx, d) }
	}
	if s.caps.Partitions {
		s.must("declare a destination of 2 partitions, with Partitions declared", declare(parts))
	} else {
		s.refuses("a destination of 2 partitions, with Partitions not declared", declare(parts))
	}
	if !s.caps.DeadLetters {
		limited := plain("l")
		limited.Refusals = 2
		s.refuses("a destination with dead letters, with DeadLetters not declared", declare(limited))
	}
	switch {
	case !s.caps.Replicas:
		s.refuses("a destination of 2 replicas, with Replicas not declared", declare(replicas))
	case s.s.h.Nodes > 1:
		s.must("declare a destination of 2 replicas, with Replicas declared", declare(replicas))
	default:
		if s.call("declare a destination of 2 replicas", declare(replicas)) == nil {
			s.errorf("a destination of 2 replicas was made on one node")
		}
	}
}

func (s *session) tryProducer() {
	x := s.sender("d")
	if _, ok := x.p.(driver.BatchProducer); ok != s.caps.Batch {
		s.errorf("Batch is declared: %v, the producer has PublishBatch: %v", s.caps.Batch, ok)
	}
	e := s.env
	if s.caps.Keys && s.caps.Consume {
		r := s.receive(e.spec("keys", "d"), nil)
		m := messages("d", "keyed", 1, 64)[0]
		m.Key = []byte("a key")
		x.send(m)
		if !eventually(func() bool { return len(r.texts()) > 0 }) {
			e.fatalf("a message with a key was not delivered within %v", patience)
		}
		if got := r.deliveries()[0].key; got != "a key" {
			e.errorf("Keys is declared, and a message with the key %q came with the key %q", "a key", got)
		}
		r.close()
	}
}

func (s *session) trySettle() {
	for settle := driver.SettleEach; settle <= driver.SettleNone; settle++ {
		declared := false
		for _, have := range s.caps.Settle {
			declared = declared || have == settle
		}
		if declared {
			continue // SettledNotRedelivered tests it
		}
		spec := s.spec("settle", "d")
		spec.Settle = settle
		s.refuses(fmt.Sprintf("a consumer with settle %v, which is not declared", settle), s.consumer(spec))
	}
}

// consumer opens a consumer and closes it again.
func (s *session) consumer(spec driver.ConsumerSpec) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := s.conn.Consumer(ctx, spec)
		if err == nil {
			s.later(c.Close)
		}
		return err
	}
}

// tryDeliveries opens one consumer, tries what else may coexist with it, and checks its deliveries.
func (s *session) tryDeliveries() {
	s.declare("one")
	r := s.receive(s.spec("one", "one"), nil)
	if !s.caps.Subscriptions {
		s.refuses("a second subscription, with Subscriptions not declared", s.consumer(s.spec("two", "one")))
	}
	if !s.caps.Competing {
		spec := s.spec("one", "one")
		spec.Index = 1
		s.refuses("a second consumer of one subscription, with Competing not declared", s.consumer(spec))
	}
	x := s.sender("one")
	x.send(messages("one", "seen", 5, 64)...)
	if !eventually(func() bool { return len(r.texts()) >= 5 }) {
		s.fatalf("%d of 5 messages were delivered", len(r.texts()))
	}
	for _, d := range r.deliveries() {
		if s.caps.Partitions && d.partition != 0 || !s.caps.Partitions && d.partition != -1 {
			s.errorf("Partitions is declared: %v, a message of a destination with one came from partition %d", s.caps.Partitions, d.partition)
			break
		}
	}
	r.close()
	if !s.caps.SettleConfirmed && r.settlements() > 0 {
		s.errorf("SettleConfirmed is not declared, and Settled was called")
	}
}
