package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// cold makes a run of 2 s of warm-up and 10 measured seconds at 1,000 messages a second, with the given
// failed and dropped messages in each second of the run.
func cold(failed, dropped map[int]uint64) result.Result {
	in := short(2, 10, 1000, flat, flat)
	in.Run.WarmUpS = new(2.0)
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

func TestSlowStartNotBlamedOnLoad(t *testing.T) {
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
	c := rate(of(&jitter)).stored()
	if c.Values["warmup"] != 6.0 || !SlowAtFirst(c) {
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

func TestMostOfAShortfallAtFirst(t *testing.T) {
	// What an Artemis in a fresh Java process dropped in each second of a run at 6,000/s, at this run's rate.
	artemis := map[int]uint64{0: 748, 1: 693, 2: 352, 3: 38, 4: 231, 5: 10, 6: 168, 7: 34, 8: 13, 9: 7, 10: 5, 11: 5}
	waits := cold(nil, nil) // nothing is dropped, and what waited for room was never sent
	waits.MessagesAll.Sent, waits.MessagesAll.Confirmed, waits.MessagesAll.Unsent = 9800, 9700, 2200
	waits.MessagesAll.Unconfirmed, waits.Messages.Sent, waits.Messages.Unsent = 100, 9000, 1000
	for i := range 3 {
		waits.Intervals[i].Sent, waits.Intervals[i].Confirmed = 300, 300
	}
	for name, x := range map[string]struct {
		in     result.Result
		check  func(*subject) check
		why    string
		says   string
		warmup float64
	}{
		"dropped": {
			cold(nil, artemis), rate, "rate.full slow.mostly advice.warm_up",
			"in the first 2 s of the run, warm-up included, it confirmed 27.9 % of the offered messages, and 91.4 % afterwards", 3,
		},
		"dropped for half of the run": {
			cold(nil, map[int]uint64{0: 900, 1: 900, 2: 900, 3: 900, 4: 900, 5: 900, 8: 600, 9: 600}), rate, "rate.full slow.mostly advice.warm_up",
			"in the first 6 s of the run, warm-up included, it confirmed 10 % of the offered messages, and 80 % afterwards", 9,
		},
		"failed, one of them later": {
			cold(map[int]uint64{0: 900, 1: 900, 9: 1}, nil), failed, "slow.mostly advice.warm_up failed.warm_up failed.accepted failed.look",
			"in the first 2 s of the run, warm-up included, it confirmed 10 % of the offered messages, and 100 % afterwards", 3,
		},
		"never sent or confirmed": {
			waits, failed, "slow.mostly advice.warm_up failed.warm_up failed.accepted failed.look",
			"in the first 3 s of the run, warm-up included, it confirmed 30 % of the offered messages, and 100 % afterwards", 5,
		},
	} {
		c := x.check(of(&x.in))
		if s := c.stored(); whyOf(c) != x.why || !strings.Contains(s.Why, x.says) || s.Values["warmup"] != x.warmup {
			t.Errorf("%s: %s: %q, warm-up %v s; want %s: %q, %v s", name, whyOf(c), s.Why, s.Values["warmup"], x.why, x.says, x.warmup)
		}
	}
}

func TestOnlyASlowBeginningIsNamed(t *testing.T) {
	every := func(n uint64) map[int]uint64 {
		all := map[int]uint64{}
		for i := range 12 {
			all[i] = n
		}
		return all
	}
	slowly := every(300)
	slowly[0], slowly[1] = 600, 500
	for name, dropped := range map[string]map[int]uint64{
		"throughout":                     every(300),
		"late":                           {8: 900, 9: 900},
		"for half of it and longer":      {0: 900, 1: 900, 2: 900, 3: 900, 4: 900, 5: 900, 6: 900, 7: 900},
		"throughout, more at first":      slowly,
		"at first, but more of it later": {0: 500, 6: 400, 7: 400, 8: 400},
	} {
		in := cold(nil, dropped)
		if c := rate(of(&in)); whyOf(c) != "rate.full" {
			t.Errorf("%s: %s; want rate.full alone", name, whyOf(c))
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
