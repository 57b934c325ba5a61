package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
)

func TestBlocksJoinProducersOfOneReason(t *testing.T) {
	var b blocks
	for _, x := range []struct {
		at       int64
		who, why string
		isNew    bool
	}{
		{1, "p0", "memory", true},
		{2, "p0", "memory", false},
		{2, "p1", "memory", true},
		{3, "p0", "", true},
		{4, "p1", "disk", true},
		{5, "p0", "", false},
		{6, "p0", "disk", true},
		{7, "p1", "", true},
	} {
		if got := b.set(x.at, x.who, x.why); got != x.isNew {
			t.Errorf("at %d %s %q: new is %t", x.at, x.who, x.why, got)
		}
	}
	want := []Block{{From: 1, To: 4, Why: "memory"}, {From: 4, To: 9, Why: "disk", Open: true}}
	if d := cmp.Diff(want, b.until(9)); d != "" || !b.open() {
		t.Errorf("open %t; (-want +got)\n%s", b.open(), d)
	}
}

// The system confirms nothing more, and says that it accepts no messages, for the rest of the run
// or for a period.
func TestBlockingSystemIsNotGone(t *testing.T) {
	for what, x := range map[string]struct {
		until int // the message at which it accepts them again; 0: never
		gone  bool
	}{"until the end": {0, false}, "for a time": {80, true}} {
		t.Run(what, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				f := &fake{backlog: func() (uint64, error) { return 0, driver.ErrUnreachable }}
				f.forget = func(_, n int) bool {
					switch n {
					case 60:
						f.run.Blocked("producer 0", "low on memory")
					case x.until:
						f.run.Unblocked("producer 0")
					}
					return n >= 60
				}
				f.copies = func(_, n int) int {
					if n >= 60 {
						return 0
					}
					return 1
				}
				f.backlog = func() (uint64, error) { return 0, driver.ErrTimeout } // an unanswered question must not count as gone
				cfg := config(f, 100)
				cfg.Drain = 6 * time.Second
				raw := do(t, cfg)
				if gone := raw.Gone != nil; gone != x.gone {
					t.Errorf("gone: %v, want %t", raw.Gone, x.gone)
				}
				if len(raw.Blocks) != 1 || raw.Blocks[0].Why != "low on memory" || raw.Blocks[0].Open == x.gone || raw.Blocks[0].To <= raw.Blocks[0].From {
					t.Errorf("blocks %+v", raw.Blocks)
				}
			})
		})
	}
}

func TestErrBlockedCountsAsResponse(t *testing.T) {
	if !refusal(driver.ErrBlocked) || class(driver.ErrBlocked) != ClassBlocked {
		t.Errorf("refusal %t, class %q", refusal(driver.ErrBlocked), class(driver.ErrBlocked))
	}
}
