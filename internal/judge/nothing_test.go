package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// It names errors only if there are any. Without consumers, or with one delivered message, it says nothing
// about deliveries.
func TestARunWithoutFiguresSaysWhatHappened(t *testing.T) {
	t.Parallel()
	consuming := func(left *uint64, errs *result.Errors) result.Result {
		return result.Result{Run: result.Run{Mode: result.ModeConsume}, Evidence: &result.Evidence{StillHeld: left, Errors: errs}}
	}
	of := func(m result.Messages, e result.Evidence) result.Result {
		return result.Result{Messages: m, Evidence: &e}
	}
	closed := func(e result.Evidence) result.Result {
		return result.Result{Run: result.Run{Loop: result.LoopClosed}, Evidence: &e}
	}
	delivered := func(m result.Messages, subscriptions int) result.Result {
		m.Scheduled, m.Sent, m.Confirmed = 9, 9, 9
		return of(m, result.Evidence{Subscriptions: subscriptions})
	}
	failed := &result.Errors{Kinds: 1}
	errs := result.Evidence{Errors: failed}
	for _, x := range []struct {
		in    result.Result
		want  result.Status
		codes string
	}{
		{consuming(new(uint64(0)), failed), result.Invalid, "run.nothing_to_receive run.up_to_date"},
		{consuming(new(uint64(1234)), nil), result.Invalid, "run.unreceived run.held_back"},
		{consuming(nil, nil), result.Invalid, "run.unreceived run.nothing_came"},
		{consuming(nil, failed), result.Invalid, "run.unreceived run.nothing_came advice.events"},
		{of(result.Messages{}, result.Evidence{}), result.Invalid, "run.unsent run.sent_nothing unsent.nothing_due"},
		{of(result.Messages{Scheduled: 9, Dropped: 9}, result.Evidence{}), result.Invalid, "run.unsent run.sent_nothing unsent.dropped"},
		{of(result.Messages{Scheduled: 9, Unsent: 9}, result.Evidence{}), result.Invalid, "run.unsent run.sent_nothing unsent.no_room"},
		{of(result.Messages{Scheduled: 9, Unsent: 9}, result.Evidence{Behind: 9}), result.Invalid, "run.unsent run.sent_nothing unsent.behind"},
		{of(result.Messages{Scheduled: 9}, errs), result.Invalid, "run.unsent run.sent_nothing unsent.events"},
		{closed(result.Evidence{}), result.Invalid, "run.unsent run.sent_nothing unsent.closed"},
		{closed(result.Evidence{Filled: &result.Filled{Full: true, Held: 1024}}), result.Invalid, "run.unsent run.sent_nothing unsent.full"},
		{of(result.Messages{Scheduled: 9, Sent: 9}, result.Evidence{}), result.Invalid, "run.unconfirmed run.stands"},
		{of(result.Messages{Scheduled: 9, Sent: 9}, errs), result.Invalid, "run.unconfirmed run.refused advice.events"},
		{delivered(result.Messages{Pending: 18}, 2), result.Suspect, "run.undelivered run.lower_bound run.receives"},
		{delivered(result.Messages{Pending: 17, Late: 1}, 2), result.Suspect, "run.undelivered run.lower_bound run.some_late"},
		{delivered(result.Messages{Lost: 18}, 2), result.Suspect, "run.undelivered run.lower_bound run.all_lost"},
		{delivered(result.Messages{Pending: 17, Delivered: 1}, 2), result.Valid, "run.whole"},
		{delivered(result.Messages{Corrupted: 18}, 2), result.Valid, "run.whole"},
		{delivered(result.Messages{}, 0), result.Valid, "run.whole"},
	} {
		c := run(subjectOf(&x.in, nil)).stored()
		if got := strings.Join(c.Codes, " "); c.Status != x.want || got != x.codes {
			t.Errorf("%s, %s; want %s, %s", c.Status, got, x.want, x.codes)
		}
	}
}

func TestFillAndDrainRateIsSuspect(t *testing.T) {
	t.Parallel()
	c := drain(subjectOf(&result.Result{Evidence: &result.Evidence{Filled: &result.Filled{Messages: 1, FirstNS: 1, LastNS: 1001, Full: true, Held: 1024}}}, nil)).stored()
	if c.Status != result.Suspect || !says(c, "drain.full") || !says(c, "drain.both") {
		t.Errorf("%+v", c)
	}
}
