package series

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/result"
)

// rounds are n runs each of the scenarios a and b. b sends a twentieth more. Their rates
// are up to this many percent off.
func rounds(n int, off float64) (all []result.Entry) {
	for i := range n {
		for j, name := range []string{"a", "b"} {
			r := &result.Result{}
			r.Run.Series, r.Run.Name, r.Run.Repeat = name, fmt.Sprintf("%s-r%d", name, i+1), i+1
			r.Throughput.SentPerS = (1000 + 50*float64(j)) * (1 + off/200*float64((i*(2+j))%5-2))
			all = append(all, result.Entry{Dir: r.Run.Name, Result: r})
		}
	}
	return all
}

func TestRoundsContinueUntilFigureIsKnown(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	invalid := rounds(6, 1)
	invalid[3].Result.Verdict.Status = result.Invalid
	interrupted := rounds(6, 1)
	interrupted[4].Result.Run.Interrupted = true
	useless, before := rounds(4, 1), rounds(4, 1)
	for i := range 4 {
		useless[4+i].Result.Verdict.Status, before[4+i].Result.Verdict.Status = result.Invalid, result.Invalid
	}
	unsent := rounds(6, 1)
	unsent[5].Result.Run.Mode = result.ModeConsume
	for _, tt := range []struct {
		name    string
		until   Until
		entries []result.Entry
		more    bool
		stop    Stop
		looks   int // that were told of
		runs    int // that the look rests on
	}{
		{"too few for a look", Until{}, rounds(5, 1), true, "", 0, 0},
		{"known", Until{}, rounds(6, 1), false, Shown, 0, 6},
		{"not known", Until{Goal: compare.Goal{Share: 0.001, Alpha: 0.05}}, rounds(6, 5), true, "", 1, 6},
		{"as many as may be", Until{Goal: compare.Goal{Share: 0.001, Alpha: 0.05}, Most: 6}, rounds(6, 5), false, MostRuns, 0, 6},
		{"the time is over", Until{Goal: compare.Goal{Share: 0.001, Alpha: 0.05}, End: now}, rounds(6, 5), false, MostTime, 0, 6},
		{"the time is not over", Until{Goal: compare.Goal{Share: 0.001, Alpha: 0.05}, End: now.Add(1)}, rounds(6, 5), true, "", 1, 6},
		{"a figure that one run lacks", Until{}, unsent, false, NoFigure, 0, 6},
		{"an invalid run is none", Until{}, invalid, true, "", 0, 0},
		{"four invalid runs in a row", Until{}, useless, false, Useless, 0, 0},
		{"four invalid runs of before", Until{Appends: true}, before, true, "", 0, 0},
		{"an interrupted run is none", Until{}, interrupted, true, "", 0, 0},
		{"of one scenario, its median", Until{Names: []string{"b"}}, rounds(8, 1), false, Shown, 0, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, looks := tt.until, 0
			u.Figure, u.Now, u.Looked = "sent.rate", func() time.Time { return now }, func() { looks++ }
			if u.Goal.Share == 0 {
				u.Goal = compare.Goal{Share: 1, Alpha: 0.05}
			}
			if u.Names == nil {
				u.Names = []string{"a", "b"}
			}
			if u.Most == 0 {
				u.Most = 32
			}
			if more := u.More(tt.entries); more != tt.more || u.Stop != tt.stop || looks != tt.looks || u.Look.Runs != tt.runs {
				t.Errorf("more %v, stop %q, %d looks told, of %d runs; want %v, %q, %d, %d", more, u.Stop, looks, u.Look.Runs, tt.more, tt.stop, tt.looks, tt.runs)
			}
			if (u.Lacks != "") != (tt.stop == NoFigure) || u.Lacks != "" && u.Lacks != unsent[5].Dir {
				t.Errorf("it lacks %q", u.Lacks)
			}
			if !tt.more {
				return
			}
			if again := u.More(tt.entries); again || u.Stop != NoRun {
				t.Errorf("after a round without a run: more %v, stop %q", again, u.Stop)
			}
		})
	}
}

func TestTheMainFigureCanBeCompared(t *testing.T) {
	for text, want := range map[string]string{
		"load: {rate: 5/s}": "e2e.p99", "load: {rate: max}": "received.rate", "mode: produce": "send.p99",
		"mode: request": "rtt.p99", "mode: backlog\nwarmup: 0s\nmessages: 500": "received.rate", "mode: produce\nload: {rate: max}": "confirmed.rate",
	} {
		s := resolved(t, "weir: 1\nsystem: {driver: chan}\n"+text+"\n")
		if f := MainFigure(s[0]); f != want || !slices.Contains(ComparedFigures(), f) {
			t.Errorf("%q: %s; want %s, and that it can be compared", text, f, want)
		}
	}
}
