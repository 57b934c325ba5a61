package drivertest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/latch"
)

// lacksConsume is the lacks of checks that only need a consumer side.
func lacksConsume(d driver.Definition) string { return lackIf(!d.Capabilities.Consume, "Consume") }

// lacks returns a lacks for a consumer side and one more capability.
func lacks(what string, has func(driver.Capabilities) bool) func(driver.Definition) string {
	return func(d driver.Definition) string {
		if !d.Capabilities.Consume {
			return "Consume"
		}
		return lackIf(!has(d.Capabilities), what)
	}
}

// consumeChecks test what arrives, where, and when.
func consumeChecks() []check {
	return []check{
		{
			name: "DeliveryStableUntilReturn", rule: "What Deliver is given is the driver's again only on return",
			lacks: lacksConsume, run: deliveryStable,
		},
		{
			name: "GroupSplits", rule: "The consumers of one subscription share the messages",
			lacks: lacks("Competing", func(c driver.Capabilities) bool { return c.Competing }),
			run: func(e *env) {
				s := e.open()
				s.declare("d")
				first, second := e.spec("s", "d"), e.spec("s", "d")
				second.Index = 1
				a, b := s.receive(first, nil), s.receive(second, nil)
				ms := messages("d", "split", 100, 64)
				s.sender("d").send(ms...)
				e.expect("two consumers of one subscription together", payloads(ms), a, b)
			},
		},
		{
			name: "GroupsEachGetAll", rule: "Several subscriptions each get every message",
			lacks: lacks("Subscriptions", func(c driver.Capabilities) bool { return c.Subscriptions }),
			run: func(e *env) {
				s := e.open()
				s.declare("d")
				a, b := s.receive(e.spec("s", "d"), nil), s.receive(e.spec("t", "d"), nil)
				ms := messages("d", "all", 50, 64)
				s.sender("d").send(ms...)
				e.expect("the first of two subscriptions", payloads(ms), a)
				e.expect("the second of two subscriptions", payloads(ms), b)
			},
		},
		{
			name: "Order", rule: "A consumer sees the messages as they were sent, in the declared scope",
			lacks: lacks("Ordering", func(c driver.Capabilities) bool { return c.Ordering != driver.Unordered }),
			run:   order,
		},
		{
			name: "Ready", rule: "Ready is called once, when every message accepted from now on will reach this subscription",
			lacks: lacksConsume, run: ready,
		},
		{
			name: "Retains", rule: "What is sent between the opening of a consumer and its Run is kept for its subscription",
			lacks: lacks("Retains", func(c driver.Capabilities) bool { return c.Retains }), run: retains,
		},
		{
			name: "Sources", rule: "A consumer of several destinations says of each delivery which of them yielded it",
			lacks: lacksConsume, run: sources,
		},
	}
}

func deliveryStable(e *env) {
	s := e.open()
	s.declare("d")
	x := s.sender("d")
	// The sink copies what it was given, has many more messages published while it is still in
	// Deliver, and then looks again.
	entered, published := make(chan struct{}), make(chan struct{})
	var held, changed atomic.Bool
	r := s.receive(e.spec("s", "d"), func(ds []driver.Delivery) error {
		if !held.CompareAndSwap(false, true) {
			return nil
		}
		before := make([]string, len(ds))
		for i, d := range ds {
			before[i] = string(d.Payload)
		}
		close(entered)
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-published:
		case <-timer.C:
		}
		for i, d := range ds {
			if string(d.Payload) != before[i] {
				changed.Store(true)
			}
		}
		return nil
	})
	first := messages("d", "first", 1, 64)
	x.send(first...)
	if !eventually(func() bool { return latch.Closed(entered) }) {
		e.fatalf("the first message was not delivered within %v", patience)
	}
	more := messages("d", "more", 2*inFlight, 64)
	x.send(more...)
	e.quiet() // for what the client library prefetches meanwhile
	close(published)
	e.expect("the subscription", append(payloads(first), payloads(more)...), r)
	if changed.Load() {
		e.errorf("a payload changed while Deliver was looking at it")
	}
}

// orderMessages is how many messages Order sends.
const orderMessages = 100

func order(e *env) {
	s := e.open()
	d := plain("d")
	if e.caps.Partitions && e.caps.Ordering != driver.PerDestination {
		d.Partitions = 3
	}
	s.declareAs(d)
	r := s.receive(e.spec("s", "d"), nil)
	ms := messages("d", "order", orderMessages, 64)
	keyed := e.caps.Ordering == driver.PerKey && e.caps.Keys
	if keyed {
		for i, m := range ms {
			m.Key = fmt.Appendf(nil, "key-%d", i%4)
		}
	}
	s.sender("d").send(ms...)
	if !e.expect("the subscription", payloads(ms), r) {
		return
	}
	last := map[string]string{} // by scope; the payloads sort in the order sent
	for _, got := range r.deliveries() {
		scope := "the destination"
		switch {
		case keyed:
			scope = "key " + got.key
		case e.caps.Ordering == driver.PerPartition:
			scope = fmt.Sprintf("partition %d", got.partition)
		}
		if strings.Compare(got.payload, last[scope]) < 0 {
			e.errorf("in %s, %s", scope, fmt.Sprintf("%q came after %q", got.payload[:12], last[scope][:12]))
			return
		}
		last[scope] = got.payload
	}
}

// readyRounds is how many consumers Ready opens, one after the other.
const readyRounds = 6

func ready(e *env) {
	s := e.open()
	s.declare("d")
	x := s.sender("d")
	// Warm up the connection: the message must not be slower than a late subscription.
	x.send(messages("d", "warm", 1, 64)...)
	for round := range readyRounds {
		subscription := "s"
		if e.caps.Subscriptions {
			subscription = fmt.Sprintf("s%d", round)
		}
		r := s.receive(e.spec(subscription, "d"), nil)
		ms := messages("d", fmt.Sprintf("round-%d", round), 5, 64)
		x.send(ms...)
		ok := eventually(func() bool { return contains(r.texts(), payloads(ms)) })
		if !ok {
			missing, _ := difference(payloads(ms), r.texts())
			e.errorf("of %d messages published after Ready of consumer %d, %d did not arrive%s", len(ms), round, len(missing), sample(missing))
		}
		if n := r.ready(); n != 1 {
			e.errorf("Ready was called %d times", n)
		}
		r.close()
		if n := r.ready(); n != 1 {
			e.errorf("Ready was called %d times by the end of Run", n)
		}
	}
}

func contains(got, want []string) bool {
	missing, _ := difference(want, got)
	return len(missing) == 0
}

// retainedMessages is how many messages Retains sends before any consumer runs.
const retainedMessages = 100

func retains(e *env) {
	s := e.open()
	s.declare("d")
	r := s.opened(s.conn.Consumer, e.spec("s", "d"), nil)
	ms := messages("d", "retained", retainedMessages, 64)
	s.sender("d").send(ms...)
	e.quiet() // for a system that forgets what has no subscriber
	r.run()
	r.awaitReady()
	e.expect("a subscription with a consumer that ran after the messages were sent", payloads(ms), r)
}

// sources makes one consumer receive from three destinations, with every way of settling: a driver
// may deliver each differently.
func sources(e *env) {
	for _, how := range e.caps.Settle {
		s, names := e.three(how.String())
		spec := e.spec("s", names...)
		spec.Settle = how
		sendSources(s.sender(names...), s.receive(spec, nil), names)
	}
	if e.caps.Requests {
		s, names := e.three("request")
		r := s.respond(e.spec("s", names...), nil)
		sendSources(s.requester(names...).sender, r, names)
	}
}

// three declares three destinations in a session of their own.
func (e *env) three(label string) (s *session, names []string) {
	s, names = e.open(), []string{label + "-b", label + "-c", label + "-a"}
	s.declare(names...)
	return s, names
}

// sourceRounds is how many messages Sources sends to each destination.
const sourceRounds = 25

// sendSources sends to the destinations in turn, and checks what each delivery says.
func sendSources(x *sender, r *receiver, names []string) {
	var all []string
	of := map[string]int32{} // destination of each payload
	for round := range sourceRounds {
		for i, name := range names {
			ms := messages(name, fmt.Sprintf("source-%d-of-%s", round, name), 1, 64)
			x.send(ms...)
			all = append(all, payloads(ms)...)
			of[all[len(all)-1]] = int32(i)
		}
	}
	if !x.e.expect("a consumer of three destinations", all, r) {
		return
	}
	for _, got := range r.deliveries() {
		if want := of[got.payload]; got.source != want {
			x.e.errorf("what was sent to %s, destination %d of the consumer, came from %d by the driver's word", names[want], want, got.source)
			return
		}
	}
}
