package drivertest

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/latch"
)

// ruleYield is the sentence with which both checks here begin.
const ruleYield = "Deliver is called as soon as the client library yields messages, with all that one client call yielded"

// Prefetch, as Harness.Yields, says that one client call yields as many messages as requested.
const Prefetch = -1

// yieldChecks test what a driver does between the client library's yield and Deliver: the instant
// of delivery is read at the entry of Deliver, so that all of that would count as the system's
// latency.
func yieldChecks() []check {
	return []check{
		{name: "DeliversEachYield", rule: ruleYield, lacks: lacksConsume, run: deliversEachYield},
		{
			name: "DeliversUncopied", rule: ruleYield,
			lacks: func(d driver.Definition) string {
				if d.Client == "" {
					return "a client library (Client)"
				}
				return lacksConsume(d)
			},
			run: deliversUncopied,
		},
	}
}

// yieldPrefetch is the prefetch of DeliversEachYield.
const yieldPrefetch = 16

// deliversEachYield blocks the first Deliver until many messages wait, and checks how many each
// later one has.
func deliversEachYield(e *env) {
	allowed := e.s.h.Yields
	switch allowed {
	case Prefetch:
		allowed = yieldPrefetch
	case 0:
		allowed = 1
	}
	for _, settle := range e.caps.Settle {
		s := e.open()
		d := "d-" + settle.String()
		s.declare(d)
		x := s.sender(d)
		p := &plug{taken: make(chan struct{}), pulled: make(chan struct{})}
		var most atomic.Int64
		spec := e.spec("s", d)
		spec.Settle, spec.Prefetch = settle, yieldPrefetch
		r := s.receive(spec, func(ds []driver.Delivery) error {
			most.Store(max(most.Load(), int64(len(ds))))
			return p.deliver(ds)
		})
		s.cleanup(p.pull)
		first := messages(d, "plug", 1, 64)
		x.send(first...)
		if !eventually(func() bool { return latch.Closed(p.taken) }) {
			e.fatalf("settle %v: the first message was not delivered within %v", settle, patience)
		}
		ms := messages(d, "wait", inFlight, 64)
		x.send(ms...)
		e.quiet() // for what the client library prefetches meanwhile
		p.pull()
		e.expect("settle "+settle.String(), append(payloads(first), payloads(ms)...), r)
		if n := most.Load(); n > int64(allowed) {
			e.errorf("settle %v: %d messages were handed over together; one client call yields at most %d", settle, n, allowed)
		}
		r.close()
	}
}

// The number and sizes of the payloads of DeliversUncopied, each twice as large as the one before.
// The last alone is more than half of all, so that a buffer which a driver reuses is detected too:
// it has to grow.
const (
	copiedMessages = 5
	copiedLargest  = 512 << 10
)

// deliversUncopied makes a new consumer receive large messages, and checks what the driver's own
// code allocated for that.
func deliversUncopied(e *env) {
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1 // count each allocation
	e.cleanup(func() { runtime.MemProfileRate = rate })
	largest := copiedLargest
	if e.caps.MaxPayload > 0 {
		largest = min(largest, e.caps.MaxPayload)
	}
	for _, settle := range e.caps.Settle {
		s := e.open()
		d := "d-" + settle.String()
		s.declare(d)
		x := s.sender(d)
		spec := e.spec("s", d)
		spec.Settle = settle
		r := s.opened(s.conn.Consumer, spec, nil)
		var ms []*driver.Message
		whole := int64(0)
		for i := range copiedMessages {
			size := largest >> (copiedMessages - 1 - i)
			ms = append(ms, messages(d, fmt.Sprint("large-", i), 1, size)...)
			whole += int64(size)
		}
		var before int64
		least := int64(largest >> (copiedMessages - 1))
		if e.caps.Retains { // nothing else happens meanwhile
			x.send(ms...)
			before = e.s.allocated(least)
			r.run()
			r.awaitReady()
		} else {
			r.run()
			r.awaitReady()
			before = e.s.allocated(least)
			x.send(ms...)
		}
		if !eventually(func() bool { return len(r.deliveries()) >= len(ms) }) {
			return // Retains, or RoundTripBytes, reports it
		}
		if made := e.s.allocated(least) - before; made > whole/2 {
			e.errorf("settle %v: for %d bytes of payload the driver's own code allocated %d: it copies them before it hands them over", settle, whole, made)
		}
		r.close()
	}
}

// allocated returns how many bytes the driver's own code has allocated so far, in pieces of at
// least that size. Smaller ones are not copies of a payload: a driver that polls for messages makes
// them as long as none arrive.
func (s *suite) allocated(least int64) int64 {
	runtime.GC() // what a profile shows is up to two collections old
	runtime.GC()
	var records []runtime.MemProfileRecord
	for n, ok := 0, false; !ok; {
		records = make([]runtime.MemProfileRecord, n+64)
		n, ok = runtime.MemProfile(records, true)
		if ok {
			records = records[:n]
		}
	}
	sum := int64(0)
	for i := range records {
		if r := &records[i]; r.AllocObjects > 0 && r.AllocBytes/r.AllocObjects >= least && s.mine(allocator(r.Stack())) {
			sum += r.AllocBytes
		}
	}
	return sum
}

// allocator returns the innermost function of a stack outside Go's standard library; "" if there is
// none.
func allocator(stack []uintptr) string {
	frames := runtime.CallersFrames(stack)
	for {
		f, more := frames.Next()
		if first, _, deep := strings.Cut(f.Function, "/"); deep && strings.Contains(first, ".") {
			return f.Function
		}
		if !more {
			return ""
		}
	}
}

// driversOwn returns what identifies the functions of a driver: they are in its package's folder,
// as is the code that it shares with others.
func driversOwn(def driver.Definition) func(function string) bool {
	t := reflect.TypeOf(def.New())
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	folder := path.Dir(t.PkgPath()) + "/"
	suite := reflect.TypeFor[suite]().PkgPath() + "."
	return func(function string) bool {
		return strings.HasPrefix(function, folder) && !strings.HasPrefix(function, suite)
	}
}
