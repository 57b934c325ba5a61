package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// spoke is a result of a run in which servers said something.
func spoke() *result.Result {
	line := func(at float64, node int, text string) result.LogLine {
		return result.LogLine{TNS: int64(at * 1e9), Process: fmt.Sprintf("server-%d", node), Node: node, Text: text}
	}
	return &result.Result{
		Intervals: []result.Interval{{TS: 0, Phase: "warmup"}, {TS: 2, Phase: "measure"}},
		Slowest: []result.Slowest{{
			Of: "e2e", Messages: []result.SlowMessage{{NS: 2e9}, {NS: 2e9}, {NS: 1e9}},
			Clusters: []result.SlowCluster{
				{FromNS: 5e9, ToNS: 5.5e9, Messages: 1, Log: &result.ServerLog{Lines: []result.LogLine{line(4.9, 1, "not the most")}}},
				{FromNS: 7e9, ToNS: 9e9, Messages: 2, Log: &result.ServerLog{Lines: []result.LogLine{
					line(6.5, 2, "[1] 2026/11/26 08:12:03.4 [INF] one"), line(6.5, 2, "two"), line(6.5, 2, "three"), line(6.5, 2, "four"),
					line(7.1, 1, "JetStream cluster new stream leader for '$G > orders' "+strings.Repeat("x ", 100)), line(8, 3, "\x1b[31m<script>alert(1)"),
				}, More: 41}},
				{FromNS: 8e9, ToNS: 8.1e9, Messages: 1, Log: &result.ServerLog{Lines: []result.LogLine{}}},
			},
		}},
		Faults: []result.Fault{
			{Do: "kill", To: "leader", Processes: []string{"server-2"}, BeganNS: 7e9, Log: &result.ServerLog{Lines: []result.LogLine{line(7.2, 1, "lost a neighbour")}, More: 3, MoreAtLeast: true}},
			{Do: "stop", To: "1", Processes: []string{"server-1"}, BeganNS: 9e9, Log: &result.ServerLog{Lines: []result.LogLine{}}},
			{Do: "stop", To: "3", BeganNS: 9e9},
		},
	}
}

func TestReportShowsServerLogLines(t *testing.T) {
	r := spoke()
	say := func(what func(*single), columns int) string {
		page := &layout.Page{}
		what(&single{Page: page, r: r})
		return layout.Terminal(columns, false).Page(page)
	}
	want := `slowest     the 3 slowest e2e messages took 1.00 s to 2.00 s; 2 of them came in
            1 burst after the warm-up: 2 in a burst of 2.00 s from 5.0 s on
            the servers' own logs from 1 s before 5.0 s:
            server-2, 4.5 s: [1] 2026/11/26 08:12:03.4 [INF] one
            server-2, 4.5 s: two
            server-2, 4.5 s: three
            server-2, 4.5 s: four
            server-1, 5.1 s: JetStream cluster new stream leader for '$G >
            orders' x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x
            x x x x x x x x x x x x x x x x x x x x x x...
            server-3, 6.0 s: �[31m<script>alert(1)
            and 41 further lines
`
	if d := cmp.Diff(want, say((*single).slowest, 80)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for line := range strings.Lines(say((*single).slowest, 40)) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 40 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	want = `
logs        of the servers after kill server-2 (leader), 5.0 s:
            server-1, 5.2 s: lost a neighbour
            and at least 3 further lines
            of the servers after stop server-1, 7.0 s: nothing
`
	if d := cmp.Diff(want, say((*single).faultLogs, 80)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i := range r.Slowest[0].Clusters {
		r.Slowest[0].Clusters[i].Log.Lines = nil
	}
	if s := say((*single).slowest, 0); !strings.Contains(s, "the servers' own logs said nothing then\n") {
		t.Error(s)
	}
	r.Slowest[0].Clusters = []result.SlowCluster{{Messages: 3}}
	if s := say((*single).slowest, 0); strings.Contains(s, "logs") {
		t.Error("of logs that were not read it says something: " + s)
	}
}

func TestPageListsServerLogLines(t *testing.T) {
	page := &layout.Page{}
	(&single{Page: page, r: spoke()}).serverLogTable()
	var b strings.Builder
	must.Do(t, browser("x").Write(&b, page))
	s := b.String()
	if strings.Count(s, "<tr") != 1+1+6+1+1+1 || strings.Contains(s, "<script>alert") || strings.Contains(s, "\x1b") {
		t.Errorf("%d rows:\n%s", strings.Count(s, "<tr"), s)
	}
}
