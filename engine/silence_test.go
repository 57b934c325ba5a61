package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
)

// For various endings of a run of 1.1 seconds at 100/s: whether the system counts as gone for good,
// and since when. In all of them a node answers with facts, but not with the backlog of the
// subscription.
func TestSystemAcceptingNothingIsGone(t *testing.T) {
	const died = 60 // messages confirmed before it
	from := func(k int) func(int, int) bool { return func(_, n int) bool { return n >= k } }
	failing := func(err error) func(int, int) error {
		return func(_, n int) error {
			if n >= died {
				return err
			}
			return nil
		}
	}
	for name, tt := range map[string]struct {
		fake  *fake
		drain time.Duration
		rate  uint64
		gone  bool
		since time.Duration // the earliest of the latest confirmation
	}{
		"nothing is confirmed any more":         {&fake{forget: from(died)}, 6 * time.Second, 100, true, 500 * time.Millisecond},
		"everything fails from then on":         {&fake{confirm: failing(driver.ErrTimeout)}, 6 * time.Second, 100, true, time.Second}, // nothing is open, and the drain still waits for an answer
		"the drain is too short to know":        {&fake{forget: from(died)}, 2 * time.Second, 100, false, 0},
		"nothing is ever confirmed":             {&fake{forget: from(0)}, 6 * time.Second, 100, true, 0},
		"the last message alone is unconfirmed": {&fake{forget: from(109)}, 6 * time.Second, 100, false, 0},
		"one in the middle is unconfirmed":      {&fake{forget: func(_, n int) bool { return n == died }}, 6 * time.Second, 100, false, 0},
		"a few at a low rate are unconfirmed":   {&fake{forget: from(3)}, 6 * time.Second, 2, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				if f := tt.fake.forget; f != nil { // nor is it delivered
					tt.fake.copies = func(p, n int) int {
						if f(p, n) {
							return 0
						}
						return 1
					}
				}
				tt.fake.backlog = func() (uint64, error) { return 0, driver.ErrUnreachable }
				cfg := config(tt.fake, tt.rate)
				cfg.Drain = tt.drain
				raw := do(t, cfg)
				balanced(t, raw, 1)
				if gone := raw.Gone != nil; gone != tt.gone {
					t.Fatalf("gone: %v; want %t; %+v", raw.Gone, tt.gone, raw.Workers[0].Silence)
				}
				if !tt.gone {
					return
				}
				if at := time.Duration(raw.GoneFrom); at < tt.since || at > tt.since+200*time.Millisecond {
					t.Errorf("gone from %v; want about %v", at, tt.since)
				}
				from := "the warm-up on"
				if s := time.Duration(raw.GoneFrom - int64(cfg.Plan.WarmUp)).Seconds(); s >= 0 {
					from = fmt.Sprintf("%.1f s", s)
				}
				if want := fmt.Sprintf("nothing was confirmed from %s until the end of the drain at %.1f s of the measurement, ", from, time.Duration(raw.Ended-int64(cfg.Plan.WarmUp)).Seconds()); !strings.HasPrefix(raw.Gone.Error(), want) {
					t.Errorf("it says %q, want %q", raw.Gone, want)
				}
			})
		})
	}
}

// Nothing was confirmed from the middle of the load on, and more than 5 s later the system answers
// again, as after a restart that outlasted the load.
func TestRespondingSystemIsNotGone(t *testing.T) {
	notFound := errors.New("stream not found")
	for name, tt := range map[string]struct {
		facts, backlog error
		gone           bool
		lost           uint64
	}{
		"with numbers":             {nil, nil, false, 50},
		"that it has no stream":    {notFound, notFound, false, 0},
		"no question":              {driver.ErrUnreachable, driver.ErrUnreachable, true, 0},
		"with facts alone":         {nil, driver.ErrTimeout, true, 0},
		"that it lost its quorum":  {nil, fmt.Errorf("no leader: %w", driver.ErrUnreachable), true, 0},
		"by refusing the question": {driver.ErrAuth, driver.ErrAuth, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				f := &fake{
					forget:  func(_, n int) bool { return n >= 60 },
					copies:  func(_, n int) int { return max(0, min(1, 10-n)) },
					backlog: func() (uint64, error) { return 0, tt.backlog },
					down:    tt.facts,
				}
				cfg := config(f, 100)
				cfg.Drain = 6 * time.Second
				raw := do(t, cfg)
				balanced(t, raw, 1)
				if (raw.Gone != nil) != tt.gone || raw.All.Lost != tt.lost || raw.All.Unconfirmed != 50 {
					t.Errorf("gone %v, lost %d, unconfirmed %d; want gone %t, lost %d", raw.Gone, raw.All.Lost, raw.All.Unconfirmed, tt.gone, tt.lost)
				}
			})
		})
	}
}

// Everything fails at once from the middle of 1.1 s of load on, so that nothing is open when the
// drain begins, as after a restart.
func TestDrainWaitsForUnavailableSystem(t *testing.T) {
	for name, tt := range map[string]struct {
		down  error
		up    time.Duration // after now
		gone  bool
		ended time.Duration // about
	}{
		"it was never away":         {nil, 0, false, 1100 * time.Millisecond},
		"it is back before the end": {driver.ErrUnreachable, 4 * time.Second, false, 4 * time.Second},
		"it is back after the end":  {driver.ErrUnreachable, 20 * time.Second, true, 7100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				f := &fake{down: tt.down, up: time.Now().Add(tt.up), confirm: func(_, n int) error {
					if n >= 60 {
						return driver.ErrDisconnected
					}
					return nil
				}}
				cfg := config(f, 100)
				cfg.Drain = 6 * time.Second
				raw := do(t, cfg)
				balanced(t, raw, 1)
				if ended := time.Duration(raw.Ended); (raw.Gone != nil) != tt.gone || ended < tt.ended-time.Second || ended > tt.ended+time.Second || raw.All.Failed != 50 {
					t.Errorf("gone %v, ended at %v, failed %d; want gone %t, about %v", raw.Gone, ended, raw.All.Failed, tt.gone, tt.ended)
				}
			})
		})
	}
}

// Confirmations are delayed for longer than a silence may be, and all arrive before the drain's
// end.
func TestEndedFreezeIsNotGone(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := config(&fake{delay: 8 * time.Second}, 100)
		cfg.Drain = 20 * time.Second
		raw := do(t, cfg)
		balanced(t, raw, 1)
		if raw.Gone != nil || raw.All.Unconfirmed > 0 {
			t.Errorf("gone: %v, unconfirmed %d", raw.Gone, raw.All.Unconfirmed)
		}
	})
}

// A full system answers every message throughout the run; a disconnected one does not.
func TestOverloadedSystemIsNotGone(t *testing.T) {
	for _, tt := range []struct {
		with error
		gone bool
	}{{driver.ErrOverloaded, false}, {driver.ErrDisconnected, true}, {errors.New("no responders"), true}} {
		h := &stallDetector{}
		for i := range uint64(100) { // confirmed
			h.look(int64(i)*1e7, i, 1)
		}
		for i := range 700 {
			h.fail(tt.with)
			h.look(int64(1e9)+int64(i)*1e7, 99, 0)
		}
		s := h.silence(8e9, 0, 0, false)
		if s.Silent != tt.gone || s.From != 99e7 || s.Handed < 699 {
			t.Errorf("%v: %+v; want gone %t from 0.99 s", tt.with, s, tt.gone)
		}
	}
}

// With one message in flight a dead system leaves one without an answer, and all others wait behind
// it.
func TestFullProducerIsDetectedAsGone(t *testing.T) {
	virtual(t, func(t *testing.T) {
		cfg := config(&fake{forget: func(_, n int) bool { return n >= 60 }, backlog: func() (uint64, error) { return 0, driver.ErrUnreachable }}, 100)
		cfg.InFlight, cfg.Drain = 1, 6*time.Second
		raw := do(t, cfg)
		balanced(t, raw, 1)
		if raw.Gone == nil {
			t.Errorf("it counts as there: %+v", raw.Workers[0].Silence)
		}
	})
}
