package coordinator

import (
	"testing"
	"time"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/ledger"
)

// A look is the state of a run of one subscription at an instant of its drain, with the system's
// answer.
type look struct {
	last    time.Duration // the latest delivery
	answers bool
	holds   bool
}

// drained looks every 10 ms at a drain with that limit in which half of the messages are missing,
// until it is over, and returns whether and when the subscription was taken as dry.
func drained(t *testing.T, limit time.Duration, at func(since time.Duration) look) (dry bool, over time.Duration) {
	t.Helper()
	cfg := engine.Config{Drain: limit}
	d := newDrain(&cfg, engine.Outline{Limits: ledger.Limits{Streams: 1, Subscriptions: 1}, Owed: true})
	for since := time.Duration(0); since <= limit+time.Second; since += 10 * time.Millisecond {
		l := at(since)
		s := engine.Status{At: int64(since), Draining: true, Confirmed: 100, Last: int64(l.last), Subs: []engine.SubscriptionStatus{{Distinct: 50, Last: int64(l.last)}}}
		o := d.look(int64(since), []engine.Status{s}, func() bool { return false }, func(int) (bool, bool) { return !l.holds && l.answers, l.answers })
		if o.Over {
			return d.outcome.Dry[0], since
		}
	}
	t.Fatal("the drain did not end")
	return false, 0
}

// A subscription is dry only when the system has said so for two seconds, consistently, without a
// delivery: a system that stands still is silent too.
func TestOnlyALiveSystemRunsDry(t *testing.T) {
	between := func(since, from, to time.Duration) bool { return since >= from && since < to }
	for _, c := range []struct {
		name string
		at   func(since time.Duration) look
		dry  bool
		from time.Duration // the drain is over between these
		to   time.Duration
	}{
		{"it answers", func(time.Duration) look { return look{answers: true} }, true, 2250 * time.Millisecond, 3 * time.Second},
		{"it never answers", func(time.Duration) look { return look{} }, false, 10 * time.Second, 11 * time.Second},
		{"it holds something", func(time.Duration) look { return look{answers: true, holds: true} }, false, 10 * time.Second, 11 * time.Second},
		{"it stands still for 2.5 s, and then the rest comes", func(since time.Duration) look {
			l := look{answers: since >= 2500*time.Millisecond}
			if since > 2520*time.Millisecond {
				l.last = 2520 * time.Millisecond
			}
			return l
		}, true, 4500 * time.Millisecond, 5500 * time.Millisecond},
		{"it stands still after it answered for a while", func(since time.Duration) look {
			return look{answers: !between(since, 1500*time.Millisecond, 4*time.Second)}
		}, true, 6 * time.Second, 7 * time.Second},
		{"a message comes now and then", func(since time.Duration) look {
			return look{answers: true, last: since.Truncate(2 * time.Second)}
		}, false, 10 * time.Second, 11 * time.Second},
	} {
		dry, over := drained(t, 10*time.Second, c.at)
		if dry != c.dry || over < c.from || over > c.to {
			t.Errorf("%s: dry %v after %v; want %v between %v and %v", c.name, dry, over, c.dry, c.from, c.to)
		}
	}
}
