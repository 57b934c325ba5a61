package rabbitmq

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// refuse makes the server refuse a destination's next n messages.
func refuse(o *outlet, destination string, n int) {
	for range n {
		o.sent[o.next] = &driver.Message{Destination: destination}
		o.next++
		o.confirmed(o.next-1, false, false)
	}
}

// TestOnlyLastingNacksCloseChannel checks repeatedly while one of two destinations is refused.
func TestOnlyLastingNacksCloseChannel(t *testing.T) {
	o := sentTo(trial.NewLog(), 0)
	const span = 500 * time.Millisecond
	for i := range looks - 1 {
		refuse(o, "d", 10)
		o.sent[o.next] = &driver.Message{Destination: "other"}
		o.next++
		o.confirmed(o.next-1, true, true) // another destination's confirmation does not count
		if r := o.look(span); r != nil {
			t.Fatalf("given up after %d looks: %+v", i+1, r)
		}
		if r := o.look(span); r != nil {
			t.Fatalf("given up for refusals of before: %+v", r)
		}
	}
	refuse(o, "d", 10)
	r := o.look(span)
	if r == nil || r.destination != "d" || r.refused != 10*looks || r.span != looks*span || !errors.Is(r, driver.ErrDisconnected) {
		t.Fatalf("after %d looks: %+v", looks, r)
	}

	// The next channel is also refused, and given up later each time.
	for _, want := range []int{2 * looks, 4 * looks, 8 * looks, 8 * looks} {
		next := sentTo(trial.NewLog(), 0)
		next.inherit(o)
		n := 0
		for r = nil; r == nil && n < 100; n++ {
			refuse(next, "d", 3)
			r = next.look(span)
		}
		if n != want {
			t.Errorf("given up after %d looks, want %d", n, want)
		}
		o = next
	}

	// One confirmation resets the patience.
	next := sentTo(trial.NewLog(), 1)
	next.sent[1].Destination = "d"
	next.inherit(o)
	next.confirmed(1, false, true)
	n := 0
	for r = nil; r == nil && n < 100; n++ {
		refuse(next, "d", 3)
		r = next.look(span)
	}
	if n != looks {
		t.Errorf("given up after %d looks, want %d", n, looks)
	}
}

// TestLastingNacksReopenChannel makes a full queue refuse, and then accept messages: lasting
// refusals cost a channel, and the producer continues.
func TestLastingNacksReopenChannel(t *testing.T) {
	s := shared.Up(t, 1)
	l := trial.NewLog()
	c := open(t, driver.Run{Event: l.Event}, options(s, "max-length", "3", "overflow", "reject-publish", "reopen-after", "40ms"))
	declared(t, c, 1)
	p := producerOf(t, c, l, "d")
	first := p.now.Now()
	reopened := func() int {
		l.Lock()
		defer l.Unlock()
		n := 0
		for _, e := range l.Events {
			if strings.HasPrefix(e, "reopen producer 0 to ") && strings.Contains(e, "refusals of d and no confirmation in ") {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(trial.Patience); reopened() < 2; {
		if time.Now().After(end) {
			t.Fatalf("%d new channels, events %v", reopened(), l.Events)
		}
		_ = l.Publish(t, p, "d", "more")
	}
	if p.now.Now() == first {
		t.Error("the channel is the first")
	}
	stop := l.Consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}})
	defer stop()
	for end := time.Now().Add(trial.Patience); ; {
		err := l.Publish(t, p, "d", "again")
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nothing is taken any more: %v", err)
		}
	}
}
