package outliers

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/result"
)

const ms = int64(1e6)

// took are messages that were due at instants and took so long, in ms.
func took(pairs ...[2]int64) (all []result.SlowMessage) {
	for _, p := range pairs {
		all = append(all, result.SlowMessage{NS: p[1] * ms, DueNS: p[0] * ms, AtNS: (p[0] + p[1]) * ms})
	}
	return all
}

func TestSlowMessagesInCommon(t *testing.T) {
	var c Course
	c.Add(Hiccup, 1000*ms, 1050*ms)
	c.Add(Hiccup, 5000*ms, 5010*ms) // too short to explain any
	c.Event(result.Event{Kind: "phase", TNS: 1000 * ms})
	c.Event(result.Event{Kind: "disconnected", TNS: 3000 * ms})
	c.Fault(&result.Fault{BeganNS: 7000 * ms, UndoneNS: new(7900 * ms)})
	s := c.Explain("e2e", took([2]int64{1001, 60}, [2]int64{1005, 56}, [2]int64{1010, 51}, [2]int64{3050, 50}, [2]int64{5000, 50}), 0, 10_000*ms)
	want := &result.Slowest{
		Of: "e2e", Messages: took([2]int64{1001, 60}, [2]int64{1005, 56}, [2]int64{1010, 51}, [2]int64{3050, 50}, [2]int64{5000, 50}),
		Clusters: []result.SlowCluster{
			{FromNS: 1001 * ms, ToNS: 1061 * ms, Messages: 3}, {FromNS: 3050 * ms, ToNS: 3100 * ms, Messages: 1}, {FromNS: 5000 * ms, ToNS: 5050 * ms, Messages: 1},
		},
		// A message of 51 ms meets the hiccup when it is due from 949 to 1050 ms, the event from 2849 to 3100 ms.
		Beside: []result.Beside{{What: "hiccup", Messages: 3, Episodes: 1, Chance: 0.0306811, ByChance: 0.0101}, {What: "disconnected", Messages: 1, Episodes: 1, Chance: 0.07409125, ByChance: 0.0251}},
	}
	for i, beside := range [][]string{{"hiccup"}, {"hiccup"}, {"hiccup"}, {"disconnected"}, nil} {
		want.Messages[i].Beside = beside
	}
	if d := cmp.Diff(want, s, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if Significant(s, s.Beside[0]) || Significant(s, s.Beside[1]) {
		t.Error("either is beside one episode, which it may be by chance")
	}
	if c.Explain("e2e", nil, 0, 1) != nil {
		t.Error("without messages there is nothing to explain")
	}
}

func TestConstantConditionIsNotOutlierCause(t *testing.T) {
	var c Course
	c.Add("x", 0, 10_000*ms)
	s := c.Explain("send", took([2]int64{1000, 9}, [2]int64{2000, 8}, [2]int64{3000, 7}), 0, 10_000*ms)
	if b := s.Beside[0]; b.Messages != 3 || b.ByChance != 1 || Significant(s, b) {
		t.Errorf("%+v", b)
	}
}

func TestCollectionsHaveInstants(t *testing.T) {
	var c Course
	c.Event(result.Event{Kind: "gc", TNS: 1000 * ms, Text: "producers: 1 cycles, longest stop 80µs"})
	c.Event(result.Event{Kind: "gc", TNS: 5000 * ms, Text: "21 cycles, longest stop 80µs"})
	s := c.Explain("e2e", took([2]int64{985, 60}, [2]int64{4100, 56}, [2]int64{970, 9}, [2]int64{1001, 5}), 0, 10_000*ms)
	var got [][]string
	for _, m := range s.Messages {
		got = append(got, m.Beside)
	}
	if d := cmp.Diff([][]string{{Collected}, {Collected}, nil, nil}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestPeriodNeedsRegularRepeats(t *testing.T) {
	for name, tt := range map[string]struct {
		at   []int64
		want int64 // 0: none
	}{
		"every 5 s":             {[]int64{1000, 6000, 11000, 16000, 21000}, 5000},
		"with some left out":    {[]int64{1000, 6000, 16000, 21000, 36000}, 5000},
		"a little off":          {[]int64{1000, 6100, 11000, 16050, 21000}, 5000},
		"too few":               {[]int64{1000, 6000, 11000, 16000}, 0},
		"at no beat":            {[]int64{1000, 6000, 8500, 16000, 21000, 22300}, 0},
		"one pair and then far": {[]int64{1000, 1100, 11000, 16000, 21000}, 0},
	} {
		var messages []result.SlowMessage
		for _, at := range tt.at {
			messages = append(messages, took([2]int64{at, 10})...)
		}
		got := (&Course{}).Explain("e2e", messages, 0, 60_000*ms).PeriodNS
		if (got == nil) != (tt.want == 0) || got != nil && *got != tt.want*ms {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSecondsAreJudgedByTheOthers(t *testing.T) {
	var c Course
	for i := range int64(10) {
		x := host.Sample{
			FromNS: i * 1e9, ToNS: (i + 1) * 1e9,
			Host:      host.HostSample{UserS: new(0.5), SystemS: new(0.5), IdleS: new(1.0), IOWaitS: new(0.0), StealS: new(0.0), DiskFlushes: new(uint64(5)), DiskWrittenBytes: new(uint64(0))},
			Processes: []host.ProcessSample{{Name: "weir", Processes: 1, UserS: new(9.0), SystemS: new(0.0)}, {Name: "s", Processes: 1, UserS: new(0.1), SystemS: new(0.0)}},
		}
		switch i {
		case 3:
			x.Host.StealS, x.Host.DiskFlushes = new(0.1), new(uint64(16))
		case 5:
			x.Host.IOWaitS, x.Processes[1].UserS = new(0.5), new(0.31)
		case 7:
			x.Processes[1] = host.ProcessSample{Name: "s"}
			x.Host.DiskFlushes = new(uint64(15)) // not more than three times as many
		case 9:
			x.Processes[1].Stopped = 1
		}
		c.Second(&x)
	}
	s := c.Explain("e2e", took([2]int64{3500, 10}, [2]int64{5500, 10}, [2]int64{7500, 10}, [2]int64{9500, 10}), 0, 10_000*ms)
	var got [][]string
	for _, m := range s.Messages {
		got = append(got, m.Beside)
	}
	want := [][]string{{Flushes, Stolen}, {Busy, Waiting}, {Gone}, {Halted}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestEpisodesAreCounted: a hiccup of 50 ms beside messages of one stall may be chance, in a run of
// ten seconds; beside those of four stalls it is none.
func TestEpisodesAreCounted(t *testing.T) {
	for stalls, want := range map[int64]bool{1: false, 4: true} {
		var c Course
		var messages []result.SlowMessage
		for i := range stalls {
			at := 1000 + 2000*i
			c.Add(Hiccup, at*ms, (at+50)*ms)
			for k := range 20 / stalls {
				messages = append(messages, took([2]int64{at + k, 50 - k})...)
			}
		}
		s := c.Explain("e2e", messages, 0, 10_000*ms)
		if b := s.Beside[0]; b.Messages != 20 || b.Episodes != int(stalls) || Significant(s, b) != want {
			t.Errorf("%d stalls: %+v, told: %v; want it %v", stalls, b, Significant(s, b), want)
		}
	}
}

// TestIndependentConditionIsRarelyNamed simulates runs of a minute with one to six stalls of 20
// messages in all, on a host whose figures have nothing to do with them: some seconds, or some
// seconds on end, have many times what others have.
func TestIndependentConditionIsRarelyNamed(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	const runs, seconds = 400, 60
	named := 0
	for range runs {
		var c Course
		var busy [4]float64
		for i := range int64(seconds) {
			x := host.Sample{FromNS: i * 1e9, ToNS: (i + 1) * 1e9, Host: host.HostSample{UserS: new(1.0), SystemS: new(0.5), IdleS: new(0.5), IOWaitS: new(0.0), StealS: new(0.0)}}
			for k := range busy { // the level stays for some seconds
				busy[k] = 0.6*busy[k] + 0.8*dice.NormFloat64()
			}
			n := func(k int) *uint64 { return new(uint64(100 * math.Exp(1.2*busy[k]))) }
			x.Host.DiskFlushes, x.Host.DiskWrittenBytes, x.Host.DiskReadBytes, x.Host.MajorFaults = n(0), n(1), n(2), n(3)
			if dice.Float64() < 0.05 {
				x.Host.StealS = new(0.1)
			}
			c.Second(&x)
		}
		stalls := 1 + dice.IntN(6)
		var messages []result.SlowMessage
		for i := range stalls {
			at := dice.Int64N(seconds*1000 - 300)
			for k := range int64(20 / stalls) {
				messages = append(messages, took([2]int64{at + k, 100 + int64(i) - k})...)
			}
		}
		s := c.Explain("e2e", messages, 0, seconds*1e9)
		if slices.ContainsFunc(s.Beside, func(b result.Beside) bool { return Significant(s, b) }) {
			named++
		}
	}
	t.Logf("%d of %d runs name a cause", named, runs)
	if named > runs/20 {
		t.Errorf("%d of %d runs name a cause that is none; want one in twenty at most", named, runs)
	}
}
