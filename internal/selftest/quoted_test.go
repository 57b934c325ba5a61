package selftest

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/disturb"
	"github.com/weirmq/weir/result"
)

// Undisturbed visits of a system: each message arrives when it is due and is answered as planned.
func punctual(s *simulated) []Visit {
	visits := make([]Visit, s.messages())
	for i := range visits {
		due := int64(i) * int64(time.Second) / int64(s.rate)
		visits[i] = Visit{Seq: uint64(i), Due: due, Arrival: due, Planned: due + 1, Replied: due + 1}
	}
	return visits
}

func TestSimulatedTruth(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, s := range simulateds() {
		t.Run(s.name, func(t *testing.T) {
			got := s.truth(punctual(&s))
			n := s.messages() - s.first()
			if len(got) != n || !slices.IsSorted(got) {
				t.Fatalf("%d responses, sorted: %v; want %d", len(got), slices.IsSorted(got), n)
			}
			at := func(p float64) float64 { return float64(got[int(p*float64(n))-1]) }
			switch s.name {
			case "constant":
				if got[0] != 10*ms || got[n-1] != 10*ms {
					t.Errorf("from %d to %d ns; want 10 ms", got[0], got[n-1])
				}
			case "exponential": // 4 standard errors of the median of 5,000: 6 % of the mean
				if want := 2 + 8*math.Ln2; math.Abs(at(0.5)/1e6-want) > 0.5 {
					t.Errorf("median %.2f ms; want %.2f", at(0.5)/1e6, want)
				}
			case "bimodal":
				slow := len(got) - slices.Index(got, 50*ms)
				if got[0] != 5*ms || math.Abs(float64(slow)/float64(n)-math.Exp(-3)) > 4*math.Sqrt(0.05/float64(n)) {
					t.Errorf("%d of %d take 50 ms, the others %d ns", slow, n, got[0])
				}
			case "queue": // each waits for all before it: at least the service, at most a busy period
				if got[0] < 2*ms || got[n-1] <= 4*ms {
					t.Errorf("from %d to %d ns; want some that wait", got[0], got[n-1])
				}
			}
			late := punctual(&s)
			for i := range late {
				late[i].Arrival += 7 * ms // the generator's doing
				late[i].Planned += 7 * ms
				late[i].Replied += 8 * ms // the system's own, 1 ms
			}
			for i, v := range s.truth(late) {
				if v != got[i]+ms {
					t.Fatalf("of a system that answers 1 ms late: %d ns at rank %d; want %d", v, i+1, got[i]+ms)
				}
			}
		})
	}
}

func TestQuotedFigureIsRight(t *testing.T) {
	at := func(v int64) *int64 { return &v }
	for _, tc := range []struct {
		name        string
		f           QuotedFigure
		near, right bool
	}{
		{"10 % above", QuotedFigure{Truth: 100, Reported: 110}, true, true},
		{"10 % below", QuotedFigure{Truth: 100, Reported: 90}, true, true},
		{"11 % above", QuotedFigure{Truth: 100, Reported: 111}, false, false},
		{"11 % above, in the interval", QuotedFigure{Truth: 100, Reported: 111, Lo: at(100), Hi: at(130)}, false, true},
		{"below the interval", QuotedFigure{Truth: 100, Reported: 130, Lo: at(101), Hi: at(130)}, false, false},
		{"above the interval", QuotedFigure{Truth: 100, Reported: 80, Lo: at(70), Hi: at(99)}, false, false},
		{"in an interval without an end", QuotedFigure{Truth: 100, Reported: 130, Lo: at(90)}, false, false},
	} {
		if tc.f.Near() != tc.near || tc.f.Right() != tc.right {
			t.Errorf("%s: near %v, right %v", tc.name, tc.f.Near(), tc.f.Right())
		}
	}
}

func TestNinetyFivePercentOfAllRuns(t *testing.T) {
	for _, tc := range []struct {
		name         string
		right        []int // of 50 runs each
		failed, done int
	}{
		{"few wrong under each", []int{48, 48, 47, 47}, 0, 5},
		{"too many under all", []int{48, 48, 47, 46}, 1, 5},
		{"too many under one", []int{50, 50, 50, 42}, 1, 5},
		{"one disturbance says little", []int{44}, 0, 1},
	} {
		c := Calibration{}
		for _, right := range tc.right {
			c.Quoted = append(c.Quoted, Quoting{Disturbance: disturb.Stop, Runs: 50, Right: right})
		}
		if failed, done := c.Tests(); failed != tc.failed || done != tc.done {
			t.Errorf("%s: %d of %d failed; want %d of %d", tc.name, failed, done, tc.failed, tc.done)
		}
	}
}

func TestQuotingCountsAndPasses(t *testing.T) {
	right := QuotedFigure{Of: "e2e", P: 50, Truth: 100, Reported: 100, Quotable: true}
	wrong := QuotedFigure{Of: "e2e", P: 99, Truth: 100, Reported: 200, Quotable: true}
	marked := wrong
	marked.Quotable = false
	for _, tc := range []struct {
		name                string
		kind                disturb.Kind
		right, wrong, mute  int // runs
		pass                bool
		reported, quotable  int
		rightOnes, examples int
	}{
		{"all right", disturb.Spin, 4, 0, 0, true, 8, 4, 4, 0},
		{"one of four wrong", disturb.Spin, 3, 1, 0, true, 8, 5, 4, 1},
		{"two of four wrong", disturb.Spin, 2, 2, 0, false, 8, 6, 4, 2},
		{"the only one wrong", disturb.Spin, 0, 1, 0, false, 2, 2, 1, 1},
		{"7 of 50 wrong", disturb.Stop, 43, 7, 0, true, 100, 57, 50, 7},
		{"8 of 50 wrong", disturb.Stop, 42, 8, 0, false, 100, 58, 50, 8},
		{"50 wrong", disturb.Stop, 0, 50, 0, false, 100, 100, 50, mostWrong},
		{"nothing quotable on a disturbed host", disturb.Stop, 0, 0, 4, true, 4, 0, 0, 0},
		{"nothing quotable", disturb.None, 0, 0, 4, false, 4, 0, 0, 0},
	} {
		q := Quoting{Disturbance: tc.kind}
		for n, figures := range map[int][]QuotedFigure{0: {right, marked}, 1: {right, wrong}, 2: {marked}} {
			for range []int{tc.right, tc.wrong, tc.mute}[n] {
				q.add(&QuotedRun{Figures: figures, Result: &result.Result{Verdict: result.Verdict{Status: result.Valid}}})
			}
		}
		reported, quotable, ones := q.Figures()
		if q.Passed() != tc.pass || reported != tc.reported || quotable != tc.quotable || ones != tc.rightOnes || len(q.Wrong) != tc.examples {
			t.Errorf("%s: passed %v; %d reported, %d quotable, %d right, %d examples", tc.name, q.Passed(), reported, quotable, ones, len(q.Wrong))
		}
		if runs := tc.right + tc.wrong + tc.mute; q.Runs != runs || q.Valid != runs || q.Right != tc.right+tc.mute {
			t.Errorf("%s: %+v", tc.name, q)
		}
	}
	if q := (Quoting{Disturbance: disturb.Throttle, NotRun: "no right"}); !q.Passed() {
		t.Error("what could not be run has failed")
	}
	text, err := json.Marshal(Quoting{Disturbance: disturb.Spin, NotRun: "no right"})
	if want := `{"disturbance":"spin","not_run":"no right","runs":0,"right":0,"valid":0}`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}
