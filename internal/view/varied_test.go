package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// member is a run of a matrix: a scenario, what it confirmed in a second, and a p99.
func member(n int, scenario string, perS float64, p99 int64) Entry {
	e := repeat(n, p99, 1000)
	e.Result.Run.Series, e.Result.Run.Name, e.Result.Run.Repeat = "", fmt.Sprint("m", n), 1
	e.Result.Throughput.ConfirmedPerS = perS
	mean := float64(p99) / 2
	e.Result.Latency.Send.Response.MeanNS = &mean
	e.Scenario = []byte("weir: 1\nname: " + e.Result.Run.Name + "\nseed: 1\n" + scenario)
	e.Totals = nil
	return e
}

// chart cuts the chart with an id out of a page, "" where there is none.
func chart(page, id string) string {
	before, rest, found := strings.Cut(page, `<title id="`+id+`-t">`)
	if !found {
		return ""
	}
	c, _, _ := strings.Cut(rest, "</figure>")
	return before[strings.LastIndex(before, "<figure"):] + c
}

func htmlOf(t *testing.T, entries []Entry) string {
	t.Helper()
	page := rendered(t, OverviewHTML, entries, Options{})
	if _, err := look(page); err != nil {
		t.Error(err)
	}
	return page
}

// Over the numeric key with the most values, a line for each value of the others. Keys that vary with it,
// as in a zip, make no lines.
func TestFigureIsChartedOverVariedKey(t *testing.T) {
	t.Parallel()
	var entries []Entry
	for i, size := range []string{"64B", "1KiB", "64KiB"} {
		for _, storage := range []string{"file", "memory"} {
			scenario := fmt.Sprintf("system: {driver: noop, options: {storage: %s}}\nmessage: {size: %s}\nload: {rate: %d000/s}\n", storage, size, 3-i)
			entries = append(entries, member(len(entries)+1, scenario, float64(1000/(i+1)), int64(i+1)*1_000_000))
		}
	}
	entries[5].Result.Verdict.Status = result.Invalid
	page := htmlOf(t, entries)
	rate := chart(page, "varied-rate")
	mentions(t, rate,
		"messages per second over message.size", "file, message.size 64B: 1,000/s", "memory, message.size 1KiB: 500/s", ">64KiB</text>", "file, message.size 64KiB: 333/s",
	)
	if strings.Contains(rate, "memory, message.size 64KiB") {
		t.Error("an INVALID run is drawn")
	}
	if p99 := chart(page, "varied-p99"); !strings.Contains(p99, "file, message.size 1KiB: 2.00 ms") || !strings.Contains(p99, "send response 99 % over message.size") {
		t.Errorf("the chart of p99: %s", p99)
	}
	if chart(page, "varied-best") != "" {
		t.Error("of one system there is no best")
	}
}

func TestBarChartsOfTextValuesAndBest(t *testing.T) {
	t.Parallel()
	var words []Entry
	for i := range mostRows + 1 {
		words = append(words, member(i+1, fmt.Sprintf("system: {options: {storage: disk%c}}\n", 'a'+i), float64(100*(i+1)), 1e6))
	}
	if rate := chart(htmlOf(t, words), "varied-rate"); strings.Count(rate, `class="bar"`) != len(words) || !strings.Contains(rate, "system.options.storage diski: 900/s") {
		t.Errorf("the chart of rates: %s", rate)
	}
	if rate := chart(htmlOf(t, words[:2]), "varied-rate"); rate != "" {
		t.Error("the table of systems has two values of a word, and a chart repeats them")
	}
	var several []Entry
	for i, driver := range []string{"noop", "chan"} {
		for _, producers := range []int{1, 5, 25} {
			e := member(len(several)+1, fmt.Sprintf("system: {driver: %s}\ntopology: {producers: %d}\n", driver, producers), float64(100*producers*(i+1)), 1e6)
			e.Result.System.Driver = driver
			several = append(several, e)
		}
	}
	page := htmlOf(t, several)
	if rate := chart(page, "varied-rate"); !strings.Contains(rate, "chan, topology.producers 25: 5,000/s") {
		t.Errorf("the chart of rates: %s", rate)
	}
	if best := chart(page, "varied-best"); strings.Count(best, `class="bar"`) != 2 || !strings.Contains(best, "system.driver chan: 5,000/s") {
		t.Errorf("the best of each system: %s", best)
	}
	if alike := []Entry{member(1, "seed: 1\n", 100, 1e6), member(2, "seed: 2\n", 100, 1e6)}; chart(htmlOf(t, alike), "varied-rate") != "" {
		t.Error("nothing was varied but a seed, and there is a chart")
	}
}

// TestRepeatsDrawnAsOneCurve: the median over a key, and at each percentile the median of the runs.
func TestRepeatsDrawnAsOneCurve(t *testing.T) {
	t.Parallel()
	var entries []Entry
	for _, producers := range []int{1, 8} {
		for n := range 3 {
			e := repeat(n+1, int64(n+1)*1_000_000, 1000)
			e.Result.Run.Series, e.Result.Run.Name = fmt.Sprint("p", producers), fmt.Sprintf("p%d-r%d", producers, n+1)
			e.Scenario = fmt.Appendf(nil, "topology: {producers: %d}\n", producers)
			e.Result.Throughput.ConfirmedPerS = float64(producers * (n + 1) * 100)
			e.Dir = e.Result.Run.Name
			entries = append(entries, e)
		}
	}
	page := htmlOf(t, entries)
	if rate := chart(page, "varied-rate"); !strings.Contains(rate, "topology.producers 8: 1,600/s, median of 3 runs from 800/s to 2,400/s") {
		t.Errorf("the chart of rates: %s", rate)
	}
	curves := chart(page, "shift1")
	mentions(t, curves, ">p1</li>", ">p8</li>", "p8 50 %: 2.00 ms, median of 3 runs (1.00 to 3.00 ms)")
	if n := strings.Count(curves, `class="band `); n != 2 {
		t.Errorf("%d bands are drawn; want one for each scenario", n)
	}
}

// TestCurvesOfManyRunsAreDrawn: as many as can be told apart, and it says how many are not.
func TestCurvesOfManyRunsAreDrawn(t *testing.T) {
	t.Parallel()
	for n, said := range map[int]bool{7: false, layout.MostSeries: false, layout.MostSeries + 2: true} {
		var entries []Entry
		for i := range n {
			entries = append(entries, member(i+1, "seed: 1\n", 100, 1e6))
		}
		curves := chart(htmlOf(t, entries), "shift1")
		drawn := min(n, layout.MostSeries)
		if got := strings.Count(curves, `<span class="key `); got != drawn {
			t.Errorf("of %d runs %d have a curve; want %d", n, got, drawn)
		}
		if says := fmt.Sprintf("The first 18 of %d are drawn.", n); strings.Contains(curves, says) != said {
			t.Errorf("of %d runs it is said %v that some are left out", n, !said)
		}
	}
}

// Runs of different rates are not repeats, even if one of them has a profile instead of a rate.
func TestKeyMissingInOneRunDiffers(t *testing.T) {
	t.Parallel()
	page := htmlOf(t, []Entry{
		member(1, "message: {size: 1KiB}\nload: {rate: 1000/s}\n", 1000, 1e6),
		member(2, "message: {size: 1KiB}\nload: {rate: 2000/s}\n", 2000, 2e6),
		member(3, "message: {size: 1KiB}\nload: {profile: 3000/s for 5s}\n", 3000, 3e6),
		member(4, "message: {size: 64B}\nload: {rate: 1000/s}\n", 4000, 4e6),
	})
	rate := chart(page, "varied-rate")
	if strings.Contains(rate, "median of") {
		t.Errorf("different runs are one point: %s", rate)
	}
	if !strings.Contains(rate, "load.rate not set") && !strings.Contains(rate, "rate not set") {
		t.Errorf("the run without a rate is not drawn: %s", rate)
	}
}

// The worst runs are those whose messages never came.
func TestLowerBoundIsDrawn(t *testing.T) {
	t.Parallel()
	entries := []Entry{member(1, "topology: {producers: 1}\n", 100, 1e6), member(2, "topology: {producers: 2}\n", 900, 9e9)}
	entries[1].Result.Latency.Send.Response.Percentile(99).AtLeast = true
	page := htmlOf(t, entries)
	if p99 := chart(page, "varied-p99"); !strings.Contains(p99, "topology.producers 2: &gt;= 9.00 s") {
		t.Errorf("p99: %s", p99)
	}
}
