package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/latch"
)

// requestChecks test requests and their replies.
func requestChecks() []check {
	lacksRequests := func(d driver.Definition) string { return lackIf(!d.Capabilities.Requests, "Requests") }
	return []check{
		{
			name: "RequestReply", rule: "A request completes with nil, exactly once, when its reply came, m.Reply holding the bytes of that, which are the request's own",
			lacks: lacksRequests, run: requestReply,
		},
		{
			name: "RequestRefused", rule: "A responder answers a request when Deliver has accepted it, and with nothing when it has not",
			lacks: lacksRequests, run: requestRefused,
		},
		{
			name: "RequestUnanswered", rule: "A request without an answer, at once or within the driver's own time limit, fails",
			lacks: lacksRequests, run: requestUnanswered,
		},
		{
			name: "RequestClose", rule: "Close of a requester completes what is outstanding, with ErrClosed if it must, before it returns",
			lacks: lacksRequests, run: requestClose,
		},
		{
			name: "RequestLost", rule: "A request that is under way when the connection is lost completes exactly once",
			lacks: func(d driver.Definition) string {
				if lack := lacksRequests(d); lack != "" {
					return lack
				}
				return lackIf(d.Capabilities.InProcess, "a connection (InProcess)")
			},
			needs: func(h *Harness) string { return lackIf(h.Cut == nil, "Cut") },
			run:   requestLost,
		},
	}
}

// requests returns the session's connection as a Requester.
func (s *session) requests() driver.Requester {
	q, ok := s.conn.(driver.Requester)
	if !ok {
		s.fatalf("Requests is declared, and a %T is not a Requester", s.conn)
	}
	return q
}

// A requester sends requests and keeps a copy of each reply.
type requester struct {
	*sender
	mu      sync.Mutex
	replies map[*driver.Message]string
}

// requester opens a producer of requests to the destinations.
func (s *session) requester(destinations ...string) *requester {
	q := s.requests()
	x := &requester{replies: map[*driver.Message]string{}}
	x.sender = s.senderBy(q.Requester, destinations...)
	x.complete = func(m *driver.Message, err error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		if err == nil {
			x.replies[m] = string(m.Reply)
		}
		m.Reply = nil // messages are pooled: the next reply must not be this one
	}
	return x
}

// reply returns the bytes of the last reply to m.
func (x *requester) reply(m *driver.Message) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.replies[m]
}

// answered ends the check unless each of ms has completed that many times, with its own bytes.
func (x *requester) answered(times int, ms ...*driver.Message) {
	for _, m := range ms {
		switch f := x.fate(m); {
		case f.completions != times:
			x.e.fatalf("a request sent %d times was completed %d times (last error: %v)", times, f.completions, f.err)
		case f.err != nil:
			x.e.fatalf("a request of %d bytes, with a responder there, completed with: %v", len(m.Payload), f.err)
		case x.reply(m) != string(m.Payload):
			x.e.fatalf("the reply to a request of %d bytes is not the request%s", len(m.Payload), sample([]string{x.reply(m)}))
		}
	}
}

// respond opens a responder and returns when it is ready.
func (s *session) respond(spec driver.ConsumerSpec, deliver func(ds []driver.Delivery) error) *receiver {
	r := s.startBy(s.requests().Responder, spec, deliver)
	r.awaitReady()
	return r
}

func requestReply(e *env) {
	s := e.open()
	s.declare("d")
	rs := []*receiver{s.respond(e.spec("s", "d"), nil)}
	if e.caps.Competing {
		second := e.spec("s", "d")
		second.Index = 1
		rs = append(rs, s.respond(second, nil))
	}
	x := s.requester("d")
	var want []string
	largest := roundTripLargest
	if e.caps.MaxPayload > 0 {
		largest = min(largest, e.caps.MaxPayload)
	}
	for _, size := range []int{16, 1 << 10, largest} {
		ms := messages("d", fmt.Sprintf("ask-%d", size), 4, min(size, largest))
		x.publish(ms...)
		x.await(ms...)
		x.answered(1, ms...)
		want = append(want, payloads(ms)...)
	}
	const rounds = 2
	ms := messages("d", "again", 250, 64)
	for round := range rounds {
		x.publish(ms...)
		if !eventually(func() bool { return x.completed(ms, round+1) == len(ms) }) {
			e.fatalf("%d of %d requests were completed for the %d. time", x.completed(ms, round+1), len(ms), round+1)
		}
		want = append(want, payloads(ms)...)
	}
	late := messages("d", "late", inFlight/2, 64)
	x.publish(late...)
	e.must("flush", x.p.Flush)
	if n := x.completed(late, 1); n != len(late) {
		e.fatalf("Flush returned with %d of %d requests completed", n, len(late))
	}
	e.expect("the responders together", append(want, payloads(late)...), rs...)
	x.answered(rounds, ms...)
	x.answered(1, late...)
	for _, r := range rs {
		r.close()
	}
	e.must("close", x.p.Close)
}

func requestRefused(e *env) {
	s := e.open()
	s.declare("d")
	s.respond(e.spec("s", "d"), func(ds []driver.Delivery) error {
		for _, d := range ds {
			if strings.HasPrefix(string(d.Payload), "refused") {
				time.Sleep(time.Millisecond) // it may be redelivered again and again
				return errors.New("refused")
			}
		}
		return nil
	})
	x := s.requester("d")
	taken := messages("d", "taken", 1, 64)
	x.publish(taken...)
	x.await(taken...)
	x.answered(1, taken...)
	refused := messages("d", "refused", 1, 64)
	x.publish(refused...)
	e.quiet()
	if f := x.fate(refused[0]); f.completions > 0 && f.err == nil {
		e.errorf("a request that Deliver has refused was answered%s", sample([]string{x.reply(refused[0])}))
	}
}

func requestUnanswered(e *env) {
	s := e.open()
	s.declare("d", "other")
	x := s.requester("d", "other")
	ms := messages("other", "unanswered", 3, 64)
	x.publish(ms...)
	if !eventually(func() bool { return x.completed(ms, 1) == len(ms) }) {
		e.fatalf("no responder answers, and of %d requests %d have completed after %v", len(ms), x.completed(ms, 1), patience)
	}
	for _, m := range ms {
		if x.fate(m).err == nil {
			e.fatalf("a request without an answer completed with nil")
		}
	}
	s.respond(e.spec("s", "d"), nil)
	more := messages("d", "somebody", 3, 64)
	x.publish(more...)
	x.await(more...)
	x.answered(1, more...)
}

// hold opens a responder that blocks in Deliver, with the first of ms, until the check ends, and
// sends ms.
func (s *session) hold(x *requester, ms []*driver.Message) {
	p := &plug{taken: make(chan struct{}), pulled: make(chan struct{})}
	s.respond(s.spec("s", "d"), p.deliver)
	s.cleanup(p.pull)
	x.publish(ms...)
	if !eventually(func() bool { return latch.Closed(p.taken) }) {
		s.fatalf("the first request was not delivered within %v", patience)
	}
}

func requestClose(e *env) {
	s := e.open()
	s.declare("d")
	x := s.requester("d")
	ms := messages("d", "close", inFlight/2, 64)
	s.hold(x, ms)
	e.must("close", x.p.Close)
	for _, m := range ms {
		switch f := x.fate(m); {
		case f.completions != 1:
			e.fatalf("a request outstanding at Close was completed %d times when that returned", f.completions)
		case f.err == nil:
			e.fatalf("a request that was not answered completed with nil")
		case !errors.Is(f.err, driver.ErrClosed):
			e.fatalf("a request outstanding at Close completed with an error that is not ErrClosed: %v", f.err)
		}
	}
	e.must("close again", x.p.Close)
}

func requestLost(e *env) {
	s := e.open()
	s.declare("d")
	x := s.requester("d")
	ms := messages("d", "cut", 5, 64)
	s.hold(x, ms)
	if err := e.s.h.Cut(); err != nil {
		e.fatalf("the harness cannot cut the connections: %v", err)
	}
	eventually(func() bool { return x.completed(ms, 1) == len(ms) })
	_ = e.call("close the requester", func(ctx context.Context) error { return x.p.Close(ctx) })
	for _, m := range ms {
		if f := x.fate(m); f.completions != 1 {
			e.fatalf("a request that was under way when the connection was lost was completed %d times by the end of Close", f.completions)
		}
	}
}
