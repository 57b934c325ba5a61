package schedule

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
)

func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	second := step(PerSecond(1), time.Second)
	with := func(change func(*Spec)) Spec {
		s := plain(Arrival{}, second)
		change(&s)
		return s
	}
	for _, tc := range []struct {
		name string
		spec Spec
		want []string
	}{
		{"an empty spec", Spec{}, []string{
			"Producers: must be from 1 to 16777216, is 0",
			"Destinations: must be from 1 to 16777216, is 0",
			"BatchMin: must be at least 1 message, is 0",
			"Sizes: must hold at least one size",
		}},
		{"rates", plain(Arrival{}, step(0, time.Second), Phase{From: PerSecond(1), To: PerSecond(2e9), For: time.Second}), []string{
			"Phases[1].To: rate must be above 0 and at most 1,000,000,000/s (one message a nanosecond), is 2000000000/s",
		}},
		{"nothing but pauses", plain(Arrival{}, step(0, time.Second), step(0, time.Hour)), []string{
			"Phases: no message is ever due: one phase needs a rate above 0",
		}},
		{"messages at no rate", plainMessages(Phase{}), []string{
			"Phases: no message is ever due: one phase needs a rate above 0",
		}},
		{"bursts", plain(Arrival{},
			Phase{Burst: 2, For: time.Second}, Phase{Burst: 1001, Every: 1000, For: 1},
			Phase{From: 1, To: 1, Burst: 3, Every: 1000, For: 1}, Phase{From: 1, To: 1, Every: 1, For: 1}), []string{
			"Phases[0].Every: must be above 0, is 0s",
			"Phases[1].Burst: 1001 every 1µs is over 1,000,000,000/s (one message a nanosecond)",
			"Phases[2]: has both a rate and bursts; use two phases",
			"Phases[3].Every: only for bursts",
		}},
		{"durations", with(func(s *Spec) { s.WarmUp = -1; s.Phases[0].For = 0 }), []string{
			"WarmUp: must not be negative, is -1ns",
			"Phases[0].For: must be above 0, is 0s",
		}},
		{"a run of 100 h", with(func(s *Spec) { s.WarmUp, s.Phases[0].For = 50*time.Hour, 50*time.Hour }), []string{
			"Phases: warm-up and phases last 100.0 h, at most 78h11m (2^48 ns): a message's stamp holds its due instant in 48 bits",
		}},
		{"durations that overflow together", plain(Arrival{}, step(1, math.MaxInt64), step(1, math.MaxInt64), step(1, 2)), []string{
			"Phases: warm-up and phases last 5124095.6 h, at most 78h11m (2^48 ns): a message's stamp holds its due instant in 48 bits",
		}},
		{"messages that take 100 h", with(func(s *Spec) { s.Messages = 360_000 }), []string{
			"Messages: 360000 messages at 1/s last longer than a run may: at most 78h11m (2^48 ns): a message's stamp holds its due instant in 48 bits",
		}},
		{"messages that never end", with(func(s *Spec) { s.Messages = math.MaxUint64 }), []string{
			"Messages: 18446744073709551615 messages at 1/s last longer than a run may: at most 78h11m (2^48 ns): a message's stamp holds its due instant in 48 bits",
		}},
		{"random messages that take 100 h", with(func(s *Spec) { s.Arrival.Kind, s.Messages = Poisson, 360_000 }), []string{
			"Messages: 360000 messages at 1/s last longer than a run may: at most 78h11m (2^48 ns): a message's stamp holds its due instant in 48 bits",
		}},
		{"messages in two phases", with(func(s *Spec) { s.Messages, s.Phases = 5, append(s.Phases, second) }), []string{
			"Messages: needs exactly one phase, has 2",
		}},
		{"messages in a closed loop", with(func(s *Spec) { s.Messages, s.Phases = 5, nil }), []string{
			"Messages: needs exactly one phase, has 0",
		}},
		{"messages on a ramp", with(func(s *Spec) { s.Messages, s.Phases[0].To = 5, 7 }), []string{
			"Messages: the only phase must have one rate, without ramp or burst",
		}},
		{"messages in bursts", plainMessages(Phase{Burst: 1, Every: 1}), []string{
			"Messages: the only phase must have one rate, without ramp or burst",
		}},
		{"too many random messages", with(func(s *Spec) { s.Messages, s.Arrival.Kind, s.WarmUp = 1e9, Poisson, time.Second }), []string{
			"Messages: at most 1000000000, warm-up included, with poisson arrival, is 1000000000 after 1s: every gap is drawn beforehand to know the end",
		}},
		{"gamma without variation", with(func(s *Spec) { s.Arrival.Kind = Gamma }), []string{
			"Arrival.CV: the coefficient of variation must be from 0.1 to 10, is 0",
		}},
		{"gamma of no number", with(func(s *Spec) { s.Arrival = Arrival{Kind: Gamma, CV: math.NaN()} }), []string{
			"Arrival.CV: the coefficient of variation must be from 0.1 to 10, is NaN",
		}},
		{"variation of constant arrival", with(func(s *Spec) { s.Arrival.CV = 1; s.Arrival.Trace = []int64{1} }), []string{
			"Arrival.CV: only gamma arrival has a coefficient of variation, arrival is constant",
			"Arrival.Trace: only for trace arrival, arrival is constant",
		}},
		{"an unknown arrival", with(func(s *Spec) { s.Arrival.Kind = 9 }), []string{
			"Arrival.Kind: unknown kind 9",
		}},
		{"a closed loop with an arrival", plain(Arrival{Kind: Poisson}), []string{
			"Arrival.Kind: without Phases the loop is closed, and poisson arrival needs a rate",
		}},
		{"a trace without instants, with phases and messages", with(func(s *Spec) { s.Arrival.Kind, s.Messages = Trace, 3 }), []string{
			"Phases: a trace has its own instants, and no phases",
			"Arrival.Trace: must hold at least one instant",
			"Messages: a trace has as many messages as it has instants",
		}},
		{"a trace out of order", plain(Arrival{Kind: Trace, Trace: []int64{-1, 5, 3, 4, 5, 1 << 48}}), []string{
			"Arrival.Trace[0] (line 1): -1 ns is before the start of the run",
			"Arrival.Trace[2] (line 3): 3 ns is out of order: before 5 ns above it",
			"Arrival.Trace[3] (line 4): 4 ns is out of order: before 5 ns above it",
			"Arrival.Trace[5] (line 6): 281474976710656 ns is over what a run may last: at most 78h11m (2^48 ns): a message's stamp holds its due instant in 48 bits",
		}},
		{"a trace that ends within the warm-up", with(func(s *Spec) {
			s.Phases, s.WarmUp, s.Arrival = nil, time.Second, Arrival{Kind: Trace, Trace: []int64{1, 2}}
		}), []string{"WarmUp: the trace ends at 2ns, before the warm-up, 1s, does"}},
		{"batches upside down", with(func(s *Spec) { s.BatchMin, s.BatchMax = 5, 3 }), []string{
			"BatchMax: must be at least BatchMin, which is 5, is 3",
		}},
		{"a batch without end", with(func(s *Spec) { s.BatchMax = 1 << 21 }), []string{
			"BatchMax: must be at most 1048576 messages, is 2097152",
		}},
		{"sizes and weights", with(func(s *Spec) { s.Sizes = []WeightedSize{{0, 1}, {1, 0}, {-1, -1}} }), []string{
			"Sizes[0].Bytes: must be at least 1, is 0",
			"Sizes[1].Weight: must be at least 1, is 0",
			"Sizes[2].Bytes: must be at least 1, is -1",
			"Sizes[2].Weight: must be at least 1, is -1",
		}},
		{"keys without number", with(func(s *Spec) { s.Keys = Keys{Kind: UniformKeys, S: 1} }), []string{
			"Keys.N: must be at least 1, is 0",
			"Keys.S: only zipf keys have an exponent",
		}},
		{"too many zipf keys", with(func(s *Spec) { s.Keys = Keys{Kind: ZipfKeys, N: 10_000_001} }), []string{
			"Keys.N: at most 10000000 zipf keys, is 10000001: they need a table of 8 bytes each",
			"Keys.S: the exponent must be above 0 and at most 10, is 0",
		}},
		{"a number of no keys", with(func(s *Spec) { s.Keys.N = 3 }), []string{
			"Keys.N: is 3, but there are no keys",
		}},
		{"unknown keys", with(func(s *Spec) { s.Keys.Kind = 7 }), []string{
			"Keys.Kind: unknown kind 7",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := New(tc.spec)
			if err == nil {
				t.Fatal("New took it")
			}
			golden.Equal(t, tc.want, strings.Split(err.Error(), "\n"), "faults")
		})
	}
}

func plainMessages(p Phase) Spec {
	s := plain(Arrival{}, p)
	s.Messages = 5
	return s
}

func TestFaultyTraceReportsFirstTenErrors(t *testing.T) {
	t.Parallel()
	trace := make([]int64, 1000)
	trace[0] = 1
	_, err := New(plain(Arrival{Kind: Trace, Trace: trace}))
	lines := strings.Split(err.Error(), "\n")
	if got, want := lines[len(lines)-1], "Arrival.Trace: 989 more instants are wrong"; len(lines) != 11 || got != want {
		t.Errorf("%d lines, the last %q; want 11, %q", len(lines), got, want)
	}
}

func TestTheLongestRunIsTaken(t *testing.T) {
	t.Parallel()
	spec := plain(Arrival{}, step(MaxRate, 1<<48-1))
	spec.WarmUp = 1
	s := mustNew(t, spec)
	if got := take(s.constant(Part{0, 1}, 1<<48-2), 5); !cmp.Equal(got, []message{{1<<48 - 2, 1<<48 - 2}, {1<<48 - 1, 1<<48 - 1}}) {
		t.Errorf("last messages %v", got)
	}
	if s.End() != 1<<48 {
		t.Errorf("End() = %d; want 2^48", s.End())
	}
}
