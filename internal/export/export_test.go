package export

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// runs are two repeats of a scenario, the second without a verdict worth its figures, and
// a run that only received.
func runs() []Run {
	ns := func(v int64) *int64 { return &v }
	mean, perS := 1500.5, 990.5
	first := &result.Result{
		Run:    result.Run{Name: "a b-1", Series: "a b", Repeat: 1, StartedAt: "2026-01-02T03:04:05.5Z", MeasureS: 10},
		System: result.System{Driver: "nats", Guarantee: "buffered", Server: result.Server{Name: "nats-server", Version: "2.15.2", Nodes: 1}},
		Verdict: result.Verdict{
			Status: result.Suspect,
			Checks: []result.Check{{Name: "hiccups", Status: result.Suspect, Value: "much <of> it", Limit: "little"}, {Name: "steady", Status: result.Valid}},
			SLO: []result.SLO{
				{Expr: "e2e.p99 <= 10ms", Status: result.Pass, Value: 3e6, Unit: "ns"},
				{Expr: "lost == 0", Status: result.Fail, Value: 2, Unit: "messages", Why: "2 are lost"},
				{Expr: "send.p99.9 <= 1ms", Status: result.Undecided, Why: "too few samples"},
			},
		},
		Messages:    result.Messages{Scheduled: 10_000, Sent: 10_000, Confirmed: 10_000, Delivered: 9998, Lost: 2},
		MessagesAll: result.Messages{Sent: 11_000, Lost: 2},
		Throughput:  result.Throughput{OfferedPerS: 1000, SentPerS: 1000, ConfirmedPerS: 1000, ReceivedPerS: &perS, SentBytesPerS: 1_024_000},
		Latency: result.Latency{E2E: result.Pair{Response: &result.Dist{
			Count: 9998, MinNS: ns(900), MeanNS: &mean,
			Percentiles: []result.Percentile{{P: 50, NS: 1000, LoNS: ns(950), HiNS: ns(1100), Supported: true}, {P: 99.9, NS: 5_000_000, LoNS: ns(4_000_000)}, {P: 100, NS: 9_000_000, Supported: true}},
		}}},
	}
	second := *first
	second.Run.Name, second.Run.Repeat = "a b-2", 2
	second.Verdict = result.Verdict{Status: result.Invalid, Checks: []result.Check{{Name: "lateness", Status: result.Invalid, Value: "x", Limit: "y"}}}
	second.Verdict.Checks = append(second.Verdict.Checks, result.Check{Name: "failed messages", Status: result.Suspect, Value: "the system failed 5 of 10", Limit: "0 %"})
	second.Exit = &result.Exit{Code: 7, Why: "the system failed 5 of 10"}
	consumed := &result.Result{
		Run: result.Run{Name: "drain", Mode: result.ModeConsume}, System: result.System{Driver: "kafka"}, Verdict: result.Verdict{Status: result.Valid},
		Messages: result.Messages{Delivered: 5}, Throughput: result.Throughput{ReceivedPerS: &perS},
	}
	return []Run{{"r/01", first}, {"r/02", &second}, {"r/03", consumed}}
}

func TestEachFormatIsWrittenAsExpected(t *testing.T) {
	t.Parallel()
	for _, format := range Formats() {
		var b bytes.Buffer
		must.Do(t, Write(&b, format, runs()))
		golden.File(t, filepath.Join("testdata", format+".txt"), b.String())
	}
	if err := Write(&bytes.Buffer{}, "xls", nil); err == nil {
		t.Error("a format that there is not is written")
	}
}

// outage is a run in which messages never came: three of its figures are only bounds.
func outage() Run {
	r := *runs()[0].Result
	d := result.Dist{Count: 9000, Censored: 998, Percentiles: []result.Percentile{
		{P: 50, NS: 1000, Supported: true}, {P: 99, NS: 9_051_308_032, Supported: true, AtLeast: true}, {P: 100, NS: 9_051_308_032, Supported: true, AtLeast: true},
	}}
	r.Latency.E2E.Response = &d
	r.Verdict.SLO = []result.SLO{{Expr: "e2e.p99 <= 10s", Status: result.Undecided, Value: 9_051_308_032, AtLeast: true, Unit: "ns", Why: "998 never came"}, {Expr: "e2e.p99 <= 5s", Status: result.Fail, Value: 9_051_308_032, AtLeast: true, Unit: "ns"}}
	return Run{"r/out", &r}
}

// Checks that every appearance of a bound is marked, in each format.
func TestABoundIsMarkedOrLeftOut(t *testing.T) {
	t.Parallel()
	for format, c := range map[string]struct {
		bound, mark string
		want        int
	}{
		"csv":         {"9051308032", ",9051308032,,,true,true\n", 2},
		"benchstat":   {"9051308032", "-ns >= 9051308032 (r/out)\n", 2},
		"openmetrics": {"9.051308032", "weir_latency_at_least_seconds{", 2},
		"junit":       {"9.051308032", "found &gt;= 9.051308032s", 1},
	} {
		var b bytes.Buffer
		must.Do(t, Write(&b, format, []Run{outage()}))
		found := 0
		for line := range strings.Lines(b.String()) {
			if strings.Contains(line, c.bound) {
				found++
				if !strings.Contains(line, c.mark) {
					t.Errorf("%s has the bound without %q: %s", format, c.mark, line)
				}
			}
		}
		if found != c.want {
			t.Errorf("%s has the bound in %d lines; want %d:\n%s", format, found, c.want, &b)
		}
	}
	if _, is := Flat(outage().Result)["e2e.p99"]; is {
		t.Error("a bound is among the flat figures")
	}
}

// OpenMetrics readers refuse two values for one series. Repeats may share a name, and a folder may be named
// twice.
func TestSeriesAreUnique(t *testing.T) {
	t.Parallel()
	first, second := *runs()[0].Result, *runs()[0].Result
	second.Run.Repeat = 2
	var b bytes.Buffer
	must.Do(t, Write(&b, "openmetrics", []Run{{"r/01", &first}, {"r/02", &second}, {"r/01", &first}}))
	seen := map[string]bool{}
	for line := range strings.Lines(b.String()) {
		series, _, _ := strings.Cut(line, "} ")
		if seen[series] {
			t.Errorf("twice: %s", line)
		}
		seen[series] = true
	}
	if !seen[`weir_verdict{run="a b-1",folder="r/02",driver="nats",status="suspect"`] {
		t.Errorf("the second run is not there:\n%s", &b)
	}
}

// The texts are well-formed, and no run is lost.
func TestThirdPartyToolsReadExports(t *testing.T) {
	t.Parallel()
	write := func(format string) *bytes.Buffer {
		var b bytes.Buffer
		must.Do(t, Write(&b, format, runs()))
		return &b
	}
	rows := must.Get(csv.NewReader(write("csv")).ReadAll())(t)
	figures := 0
	for _, r := range runs() {
		figures += len(Figures(r.Result))
	}
	if len(rows) != figures+1 {
		t.Errorf("%d rows for %d figures and a header", len(rows), figures)
	}
	var suites testSuites
	must.Do(t, xml.Unmarshal(write("junit").Bytes(), &suites))
	if len(suites.Suites) != 3 || suites.Failures != 6 || suites.Suites[0].Skipped != 1 {
		t.Errorf("%d suites, %d failures, %d skipped; want 3, 6 (an objective, an INVALID, two losses, failed messages, an exit code), 1", len(suites.Suites), suites.Failures, suites.Suites[0].Skipped)
	}
	if text := write("benchstat").String(); strings.Count(text, "\nBenchmarkRun/name=") != 2 || !strings.Contains(text, "left out, its verdict is INVALID: r/02") {
		t.Errorf("the runs of\n%s", text)
	}
}

func TestFlatContainsOnlySupportedFigures(t *testing.T) {
	t.Parallel()
	flat := Flat(runs()[0].Result)
	for name, want := range map[string]float64{"e2e.p50": 1000, "e2e.max": 9e6, "received.rate": 990.5, "lost": 2} {
		if got, ok := flat[name]; !ok || got != want {
			t.Errorf("%s is %v (%v); want %v", name, got, ok, want)
		}
	}
	if _, ok := flat["e2e.p99.9"]; ok {
		t.Error("a percentile with too few samples is among them")
	}
}

// Runs the command of docs/formats/result.md on results with the figure and on one without.
func TestJQGateFailsOnUnknownFigure(t *testing.T) {
	t.Parallel()
	jq, err := exec.LookPath("jq")
	if err != nil {
		needs.Host(t, "jq", err)
	}
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "formats", "result.md")))(t)
	_, filter, found := strings.Cut(string(page), "\njq -e '")
	filter, _, ended := strings.Cut(filter, "' result.json")
	if !found || !ended {
		t.Fatal("the page has no such command")
	}
	for text, want := range map[string]bool{
		`{"figures": {"e2e.p99": 4000000}}`: true,
		`{"figures": {"e2e.p99": 6000000}}`: false,
		`{"figures": {"e2e.p50": 4000000}}`: false,
		`{}`:                                false,
	} {
		cmd := exec.CommandContext(t.Context(), jq, "-e", filter)
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := err == nil; got != want {
			t.Errorf("%s: %v, %s; want %v", text, got, out, want)
		}
	}
}

func TestWeakPercentileOnlyInCSV(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]bool{"csv": true, "benchstat": false, "openmetrics": false} {
		var b bytes.Buffer
		must.Do(t, Write(&b, format, runs()[:1]))
		if got := strings.Contains(b.String(), "99.9") || strings.Contains(b.String(), "0.999"); got != want {
			t.Errorf("%s has the percentile that has too few samples: %v", format, got)
		}
	}
}

// A percentile is a figure only if the sample stands for all messages. A maximum would be of the sample.
func TestTheSystemsPartIsAFigure(t *testing.T) {
	t.Parallel()
	r := *runs()[0].Result
	r.Wire = &result.Wire{E2E: &result.WireParts{System: &result.Dist{Count: 9000, MinNS: new(int64(1)), MeanNS: new(2.0), Percentiles: []result.Percentile{
		{P: 50, NS: 500, Supported: true}, {P: 99, NS: 700, Supported: true}, {P: 99.9, NS: 800}, {P: 100, NS: 900, Supported: true},
	}}}}
	r.Verdict.Figures = []result.Figure{{Name: "e2e.system.p50", Quotable: true}, {Name: "e2e.system.p99", By: judge.CheckWire}}
	flat := Flat(&r)
	var got []string
	for name := range flat {
		if strings.HasPrefix(name, "e2e.system") {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if want := []string{"e2e.system.p50", "e2e.system.samples"}; !slices.Equal(got, want) || flat["e2e.system.p50"] != 500 {
		t.Errorf("%q, p50 %v; want %q", got, flat["e2e.system.p50"], want)
	}
}
