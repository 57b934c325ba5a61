package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/driver"
)

// replayChecks test where a subscription begins, and continues.
func replayChecks() []check {
	return []check{
		{
			name: "Replays", rule: "From is where the subscription begins, if it has not begun before",
			lacks: lacks("Replays", func(c driver.Capabilities) bool { return len(c.Replays) > 0 }), run: replays,
		},
		{
			name: "Resumes", rule: "A subscription continues, after its consumers are gone, at its earliest message that is not settled",
			lacks: lacks("Resumes", func(c driver.Capabilities) bool { return c.Resumes }), run: resumes,
		},
	}
}

// replayed is how many messages Replays sends before, and again after, the position at which a
// subscription begins.
const replayed = 10

// refusalPause is how long a sink waits before it nacks, again and again.
const refusalPause = 10 * time.Millisecond

func replays(e *env) {
	for _, at := range e.caps.Replays {
		replay(e, at, 0)
		if at == driver.AtTime {
			replay(e, at, time.Hour)
		}
	}
}

// replay lets a subscription begin between messages or, at a time, that long before them.
func replay(e *env, at driver.Start, before time.Duration) {
	s := e.open()
	d := fmt.Sprintf("d-%v-%v", at, before)
	s.declare(d)
	x := s.sender(d)
	older, newer, live := messages(d, "older", replayed, 64), messages(d, "newer", replayed, 64), messages(d, "live", replayed, 64)
	x.send(older...)
	// The system's clock may have a resolution of milliseconds.
	e.quiet()
	between := time.Now()
	e.quiet()
	x.send(newer...)

	spec := e.spec("s", d)
	spec.From = driver.Position{At: at}
	want := slices.Concat(payloads(newer), payloads(live))
	switch at {
	case driver.AtEarliest:
		want = slices.Concat(payloads(older), want)
	case driver.AtLatest:
		want = payloads(live)
	case driver.AtOffset:
		if e.s.h.Offset == nil {
			e.fatalf("positions by offset are declared, and the harness has no Offset")
		}
		spec.From.Offset = "no offset"
		s.refuses("a position that is not an offset", s.consumer(spec))
		offset, err := e.s.h.Offset(s.run, d, replayed)
		if err != nil {
			e.fatalf("the harness cannot tell the offset of message %d: %v", replayed, err)
		}
		spec.From.Offset = offset
	case driver.AtTime:
		if spec.From.Time = between.Add(-before); before > 0 {
			want = slices.Concat(payloads(older), want)
		}
	default:
		e.fatalf("%v is not a position that a consumer can be asked for", at)
	}
	r := s.receive(spec, nil)
	x.send(live...)
	if !e.expect("a subscription from "+at.String()+" on", want, r) || !e.caps.Competing {
		return
	}
	spec.Index, spec.From = 1, driver.Position{At: e.caps.Replays[0]}
	second := s.receive(spec, nil)
	more := messages(d, "more", replayed, 64)
	x.send(more...)
	want = append(want, payloads(more)...)
	// The second consumer may receive again what the first has not settled yet.
	got := func() []string {
		return slices.Compact(slices.Sorted(slices.Values(append(r.texts(), second.texts()...))))
	}
	eventually(func() bool { return contains(got(), want) })
	e.quiet()
	if missing, extra := difference(want, got()); len(missing)+len(extra) > 0 {
		e.errorf("a subscription with a second consumer, opened from %v: %d messages are missing%s, %d came from before its beginning%s",
			spec.From.At, len(missing), sample(missing), len(extra), sample(extra))
	}
}

func resumes(e *env) {
	for _, settle := range acknowledged(e.caps) {
		s := e.open()
		d := "d-" + settle.String()
		s.declare(d)
		x := s.sender(d)
		var refusing, refused atomic.Bool
		spec := e.spec("s", d)
		spec.Settle = settle
		first := s.receive(spec, func([]driver.Delivery) error {
			if !refusing.Load() {
				return nil
			}
			refused.Store(true)
			time.Sleep(refusalPause) // a nacked message may be redelivered at once
			return errors.New("refused by a consumer that goes")
		})
		settled, left, missed := messages(d, "settled", replayed, 64), messages(d, "left", replayed, 64), messages(d, "missed", replayed, 64)
		x.send(settled...)
		e.expect("settle "+settle.String()+": the first consumer", payloads(settled), first)
		refusing.Store(true)
		x.send(left...)
		if !eventually(refused.Load) {
			e.fatalf("settle %v: none of %d messages was delivered", settle, len(left))
		}
		first.close()
		x.send(missed...)
		second := s.receive(spec, nil)
		who := "settle " + settle.String() + ": a second consumer of the subscription, opened when the first had left messages unsettled"
		e.expect(who, slices.Concat(payloads(left), payloads(missed)), second)
	}
}
