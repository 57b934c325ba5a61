package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// If the number of runs needed is unknown, --until-shown is advised if all sides are scenarios of one
// folder, which then alternate.
func TestUndecidedComparisonAdvisesMoreRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		dirs    [2]string // of the sides, before their numbers
		names   [2]string
		verdict compare.Verdict
		want    string
	}{
		{"two scenarios of a folder", [2]string{"m/0", "m/1"}, [2]string{"a-r", "b-r"}, compare.NothingShown, "weir run --append m --until-shown e2e.p99=5%"},
		{"sides in folders of their own", [2]string{"m/0", "n/0"}, [2]string{"a-r", "b-r"}, compare.NothingShown, "weir run --append m --repeat 6"},
		{"runs of one scenario on both sides", [2]string{"m/0", "m/1"}, [2]string{"a-r", "a-r"}, compare.NothingShown, "weir run --append m --repeat 6"},
		{"a number of runs that is known", [2]string{"m/0", "m/1"}, [2]string{"a-r", "b-r"}, compare.NeedsRuns, "weir run --append m --repeat 2"},
	} {
		change := &compare.Change{Verdict: c.verdict}
		tally := &compare.Tally{NothingShown: 1}
		if c.verdict == compare.NeedsRuns {
			change.MoreRuns, tally = 2, &compare.Tally{NeedsRuns: 1}
		}
		found := &compare.Comparison{Alpha: 0.05, Band: 0.05, Figures: []compare.Figure{
			{Family: "throughput", Name: "received", Unit: compare.UnitRate, Sides: []compare.Values{{}, {Change: change}}},
			{Family: "e2e.response", Name: "p99", Unit: compare.UnitTime, Sides: []compare.Values{{}, {Change: change}}},
		}}
		for i := range 2 {
			s := compare.SideSummary{Side: string(rune('A' + i)), Given: "m"}
			for n := range 2 {
				s.Runs = append(s.Runs, compare.RunSummary{Dir: fmt.Sprintf("%s%d-x", c.dirs[i], n), Name: fmt.Sprint(c.names[i], n+1)})
			}
			found.Sides = append(found.Sides, s)
		}
		found.Sides[1].Tally = tally
		p := new(layout.Page)
		Conclusion(p, found, Parting{Given: []string{"m"}, By: "load.in_flight"})
		if got := (layout.Text{Width: layout.Usual}).Page(p); !strings.Contains(got, c.want+"\n") {
			t.Errorf("%s: it does not advise %q:\n%s", c.name, c.want, got)
		}
	}
}

// If some of the deciding runs are SUSPECT, the page points to the reasons of one.
func TestDecidedComparisonLeadsToSuspectRuns(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[result.Status]string{
		result.Suspect: "next        weir report 'm 1/2'  # why this run is SUSPECT\n",
		result.Valid:   "shown at 95 %\n",
	} {
		found := &compare.Comparison{
			Alpha: 0.05, Band: 0.05,
			Figures: []compare.Figure{{Family: "throughput", Name: "received", Unit: compare.UnitRate, Sides: []compare.Values{{}, {Change: &compare.Change{Verdict: compare.Worse}}}}},
			Sides: []compare.SideSummary{
				{Side: "A", Runs: []compare.RunSummary{{Dir: "m 1/1", Verdict: result.Invalid, Why: "INVALID"}, {Dir: "m 1/2", Verdict: verdict}}},
				{Side: "B", Runs: []compare.RunSummary{{Dir: "n", Verdict: verdict}}, Tally: &compare.Tally{Worse: 1}},
			},
		}
		p := new(layout.Page)
		Conclusion(p, found, Parting{})
		if got := (layout.Text{Width: layout.Usual}).Page(p); !strings.HasSuffix(got, want) {
			t.Errorf("with runs that are %s it ends with\n%s; want %q", verdict, got, want)
		}
	}
}

// A closed loop's times are those at saturation.
func TestClosedLoopAnswerIsThroughput(t *testing.T) {
	t.Parallel()
	better, same, open := compare.Change{Verdict: compare.Better, Shift: -1210}, compare.Change{Verdict: compare.NoChange}, compare.Change{Verdict: compare.NothingShown, Shift: 3}
	for name, tt := range map[string]struct {
		received compare.Change
		rates    bool // were compared
		want     string
	}{
		"the rate is decided":       {compare.Change{Verdict: compare.Worse, Shift: -5}, true, "yes: B carries less: received -5"},
		"the rate is not decided":   {open, true, "undecided: the runs differ too much to tell B from A: received +3"},
		"the rate does not change":  {same, true, "no: B does not differ from A by more than ±5 % in any of 1 figure"},
		"only a time was chosen":    {same, false, "yes: B is faster: send p99 -1.21"},
		"the rate needs more runs":  {compare.Change{Verdict: compare.NeedsRuns, MoreRuns: 2}, true, "undecided: too few runs"},
		"the rate is better itself": {compare.Change{Verdict: compare.Better, Shift: 7}, true, "yes: B carries more: received +7"},
	} {
		found := &compare.Comparison{Alpha: 0.05, Band: 0.05, Sides: []compare.SideSummary{{Side: "A"}, {Side: "B", Tally: &compare.Tally{}}}, Figures: []compare.Figure{
			{Family: "send.service", Name: "p99", Unit: compare.UnitTime, Sides: []compare.Values{{}, {Change: &better}}},
			{Family: "throughput", Name: "received", Unit: compare.UnitRate, Sides: []compare.Values{{}, {Change: &tt.received}}},
		}}
		if !tt.rates {
			found.Figures = found.Figures[:1]
		}
		p := new(layout.Page)
		Conclusion(p, found, Parting{})
		if got := strings.TrimSpace((layout.Text{Width: layout.Usual}).Page(p)); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q; want %q", name, got, tt.want)
		}
	}
}

func TestAnswerNamesComparedSides(t *testing.T) {
	t.Parallel()
	change := compare.Change{Verdict: compare.NothingShown, Shift: 6140, Lo: new(-11.9e6), Hi: new(5.09e6), Percent: new(1.6), PercentLo: new(-96.6), PercentHi: new(1060.0)}
	low := change
	low.PercentHi = nil
	driver, flight := compare.Difference{Name: "driver", Sides: [][]string{{"nats"}, {"jetstream"}}}, compare.Difference{Name: "load.in_flight", Sides: [][]string{{"1"}, {"64"}}}
	mixed := compare.Difference{Name: "driver", Sides: [][]string{{"nats", "kafka"}, {"jetstream"}}}
	for _, tt := range []struct {
		a, b    string
		differs []compare.Difference
		change  *compare.Change
		want    string
	}{
		{"before", "after", []compare.Difference{flight, driver}, &change, "undecided: the runs differ too much to tell jetstream from nats: e2e p99 +1.6 % (-96.6 to +1,060 %). Worse: servers' cpu, servers' memory. Better: written"},
		{"before", "after", []compare.Difference{flight}, &change, "undecided: the runs differ too much to tell load.in_flight=64 from load.in_flight=1: "},
		{"before", "after", []compare.Difference{flight, flight}, &change, "undecided: the runs differ too much to tell B from A: "},
		{"before", "after", []compare.Difference{mixed}, &change, "undecided: the runs differ too much to tell B from A: "},
		{"system.driver=nats", "system.driver=jetstream", nil, &change, "undecided: the runs differ too much to tell jetstream from nats: e2e p99 +1.6 % (-96.6 to +1,060 %)"},
		{"load.in_flight=1", "load.in_flight=64", nil, &low, "undecided: the runs differ too much to tell load.in_flight=64 from load.in_flight=1: e2e p99 +1.6 % (at least -96.6 %)"},
		{"runs/a=1", "runs/a=2", nil, &change, "undecided: the runs differ too much to tell B from A: "},
		{"before", "after", nil, &change, "undecided: the runs differ too much to tell B from A: "},
	} {
		found := &compare.Comparison{
			Alpha: 0.05, Band: 0.05, Sides: []compare.SideSummary{{Side: "A", Given: tt.a}, {Side: "B", Given: tt.b, Tally: &compare.Tally{}}},
			Figures:     []compare.Figure{{Family: "e2e.response", Name: "p99", Unit: compare.UnitTime, Sides: []compare.Values{{}, {Change: tt.change}}}},
			Differences: tt.differs,
		}
		for _, x := range []struct {
			name    string
			verdict compare.Verdict
		}{{"servers' cpu", compare.Worse}, {"servers' memory", compare.Worse}, {"written", compare.Better}, {"on disk", compare.NothingShown}} {
			found.Figures = append(found.Figures, compare.Figure{Family: "resources", Name: x.name, Unit: compare.UnitBytes, Sides: []compare.Values{{}, {Change: &compare.Change{Verdict: x.verdict}}}})
		}
		p := new(layout.Page)
		Conclusion(p, found, Parting{})
		got := strings.Join(strings.Fields((layout.Text{Width: layout.Usual}).Page(p)), " ")
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s and %s: %q; want %q", tt.a, tt.b, got, tt.want)
		}
	}
}
