package judge

import (
	"testing"

	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// cold makes a run of 2 s of warm-up and 10 measured seconds at 1,000 messages a second, with the given
// failed and dropped messages in each second of the run.
func cold(failed, dropped map[int]uint64) result.Result {
	in := short(2, 10, 1000, flat, flat)
	in.Run.WarmUpS = ptr(2.0)
	for i := range in.Intervals[:12] {
		x, all := &in.Intervals[i], &in.MessagesAll
		x.Failed, x.Dropped = failed[i], dropped[i]
		x.Sent -= x.Dropped
		x.Confirmed -= min(x.Confirmed, x.Dropped+x.Failed)
		all.Scheduled, all.Sent, all.Dropped, all.Failed = all.Scheduled+1000, all.Sent+x.Sent, all.Dropped+x.Dropped, all.Failed+x.Failed
		if i >= 2 {
			m := &in.Messages
			m.Scheduled, m.Dropped, m.Failed = m.Scheduled+1000, m.Dropped+x.Dropped, m.Failed+x.Failed
		}
	}
	in.MessagesAll.Confirmed = in.MessagesAll.Sent - in.MessagesAll.Failed
	in.Messages.Sent = in.Messages.Scheduled - in.Messages.Dropped
	in.Messages.Confirmed = in.Messages.Sent - in.Messages.Failed
	in.Evidence.Sent = in.Messages.Sent
	return in
}

func TestASlowStartIsNotTheLoad(t *testing.T) {
	first := map[int]uint64{0: 900, 1: 900, 2: 900, 3: 300}
	jitter := cold(nil, first)
	for i := range jitter.Intervals[1:] { // seconds end a little late
		jitter.Intervals[i+1].TS += 0.0016
	}
	for name, x := range map[string]struct {
		in      result.Result
		check   func(*subject) check
		status  result.Status
		seconds float64
		why     string
	}{
		"failed":                {cold(first, nil), failed, result.Suspect, 4, "failed.slow_start failed.bounds advice.warm_up failed.warm_up"},
		"failed in the warm-up": {cold(map[int]uint64{0: 900, 1: 10}, nil), failed, result.Suspect, 2, "failed.slow_start failed.stands"},
		"seconds end late":      {jitter, rate, result.Valid, 4, "rate.slow_start advice.warm_up"},
		"no room":               {cold(nil, first), rate, result.Valid, 4, "rate.slow_start advice.warm_up"},
	} {
		c := x.check(of(&x.in))
		if c.status != x.status || whyOf(c) != x.why || c.stored().Values["slow"] != x.seconds {
			t.Errorf("%s: %+v; want %s for %s, %v s", name, c.stored(), x.status, x.why, x.seconds)
		}
	}
	if c := rate(of(&jitter)).stored(); c.Values["warmup"] != 6.0 || !SlowAtFirst(c) {
		t.Errorf("%+v; want an advised warm-up of 6 s", c)
	}
}

func TestOnlyInitialShortfallIsSlowStart(t *testing.T) {
	first := func() map[int]uint64 { return map[int]uint64{0: 900, 1: 900, 2: 900} }
	for name, change := range map[string]func(in *result.Result){
		"one more fails later":   func(in *result.Result) { in.Intervals[10].Failed, in.MessagesAll.Failed = 1, in.MessagesAll.Failed+1 },
		"one fails in the drain": func(in *result.Result) { in.Intervals[12].Failed, in.MessagesAll.Failed = 1, in.MessagesAll.Failed+1 },
		"one is never confirmed": func(in *result.Result) { in.MessagesAll.Unconfirmed = 1 },
		"an older version's": func(in *result.Result) {
			in.Intervals[0].Failed, in.Intervals[1].Failed, in.Intervals[2].Failed = 0, 0, 0
		},
		"its beginning is fine": func(in *result.Result) {
			in.Intervals[0].Failed, in.Intervals[0].Confirmed, in.MessagesAll.Failed = 0, 1000, in.MessagesAll.Failed-900
		},
		"too little after it":     func(in *result.Result) { in.Intervals = in.Intervals[:5]; in.Run.MeasureS = 3 },
		"less is sent after it":   func(in *result.Result) { in.Intervals[8].Sent, in.Intervals[8].Confirmed = 700, 700 },
		"ever more wait after it": func(in *result.Result) { in.Intervals[11].Backlog = 2000 },
		"a fault of weir's own":   func(in *result.Result) { in.Faults = []result.Fault{{Do: "kill", To: "1"}} },
	} {
		in := cold(first(), nil)
		if n := of(&in).slowStart(); n != 3 {
			t.Fatalf("%v s without a change; want 3", n)
		}
		change(&in)
		if n := of(&in).slowStart(); n != 0 {
			t.Errorf("%s: a slow start of %v s; want none", name, n)
		}
	}
}

func TestASecondCountsFailedAndDropped(t *testing.T) {
	in := &measure.Interval{}
	in.Counters[measure.WarmUp], in.Counters[measure.Measure] = measure.Counters{Failed: 1, Dropped: 2}, measure.Counters{Failed: 10, Dropped: 20}
	if x := Interval(in, "measure", false); x.Failed != 11 || x.Dropped != 22 {
		t.Errorf("%d failed, %d dropped; want 11 and 22", x.Failed, x.Dropped)
	}
}
