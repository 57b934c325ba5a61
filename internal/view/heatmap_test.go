package view

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

func TestHeatmapBucketsAreOrderedAndNarrow(t *testing.T) {
	t.Parallel()
	before := -1
	for v := int64(0); v < measure.Highest; v += 1 + v/100 {
		tile := tileOf(v)
		lo, hi := tileLowest(tile), tileLowest(tile+1)-1
		if tile < before || v < lo || v > hi {
			t.Fatalf("%d ns has bucket %d, which is of %d to %d", v, tile, lo, hi)
		}
		if wide := hi - lo; wide > lo/64 {
			t.Fatalf("the bucket of %d ns is %d wide", v, wide)
		}
		before = tile
	}
}

// logged is a folder with an interval log of that many seconds, and the latencies of e2e in each.
func logged(t testing.TB, seconds, each int) (dir string, all []*measure.Counts) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "r")
	f := must.Get(result.Create(dir))(t)
	must.Do(t, f.StartIntervals(time.Unix(1_767_323_045, 0), "v0"))
	r := rand.New(rand.NewPCG(1, 2))
	for i := range seconds {
		in := &measure.Interval{From: int64(i) * 1e9, To: int64(i+1) * 1e9}
		c := new(measure.Counts)
		phase := measure.Measure
		if i < 2 {
			phase = measure.WarmUp
		}
		for range each {
			v := int64(100_000 * (1 + r.ExpFloat64()))
			c.Add(v, 1)
			in.Kinds[measure.E2EResponse][phase].Add(v, 1)
			in.Kinds[measure.E2EService][phase].Add(v/2, 1) // which is not to be taken
		}
		all = append(all, c)
		must.Do(t, f.AppendInterval(in))
	}
	must.Do(t, f.Close())
	return dir, all
}

// heatmapOf reads the heatmap of a direction from a folder.
func heatmapOf(t testing.TB, dir, of string) *heatmap {
	t.Helper()
	_, all, _, err := own(filepath.Join(dir, result.FileIntervals), 0)
	if err != nil || all[of] == nil {
		t.Fatalf("no heatmap of %s: %v", of, err)
	}
	return all[of]
}

// Compares counts and percentiles of each part with the full histograms: a percentile may be at most a 64th
// higher.
func TestHeatmapHoldsEachLoggedLatency(t *testing.T) {
	t.Parallel()
	dir, seconds := logged(t, 12, 500)
	m := heatmapOf(t, dir, "e2e")
	if len(m.parts) != len(seconds) {
		t.Fatalf("%d parts; want one a second, %d", len(m.parts), len(seconds))
	}
	for i, want := range seconds {
		p := m.parts[i]
		if p.from != int64(i)*1e9 || p.to != int64(i+1)*1e9 {
			t.Errorf("part %d is from %d to %d ns", i, p.from, p.to)
		}
		for _, pc := range []float64{50, 99, 100} {
			rank := measure.Rank(pc, want.Total())
			got, fine := rankedOf(inBoth(p.counts), rank), want.At(rank)
			if got < fine || got > fine+fine/64 {
				t.Errorf("second %d: %v %% is %d ns; want %d to a 64th more", i, pc, got, fine)
			}
		}
	}
	if _, all, _, err := own(filepath.Join(dir, result.FileIntervals), 0); err != nil || all["send"] != nil || all["rtt"] != nil {
		t.Errorf("there are mosaics of what nothing was counted of: %v", err)
	}
}

// rankedOf is the latency with a rank: the highest of its bucket.
func rankedOf(counts map[int]uint64, rank uint64) int64 {
	var seen uint64
	for tile := 0; seen < rank; tile++ {
		if seen += counts[tile]; seen >= rank {
			return tileLowest(tile+1) - 1
		}
	}
	return 0
}

// inBoth merges the counts of both phases.
func inBoth(counts [measure.NumPhases]map[int]uint64) map[int]uint64 {
	all := map[int]uint64{}
	for _, of := range counts {
		for tile, n := range of {
			all[tile] += n
		}
	}
	return all
}

// outage is the folder of a 12-second run, 2 s of it warm-up, whose consumers got nothing in seconds 6 and
// 7: "each" messages due in each of them never came. The run ended after 20 s. It returns the latencies of
// what came in the measured window.
func outage(t testing.TB, each int) (dir string, came *measure.Counts) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "r")
	f := must.Get(result.Create(dir))(t)
	must.Do(t, f.StartIntervals(time.Unix(1_767_323_045, 0), "v0"))
	came = new(measure.Counts)
	var ages [measure.NumPhases]measure.Counts
	for i := range 12 {
		in := &measure.Interval{From: int64(i) * 1e9, To: int64(i+1) * 1e9}
		phase := measure.Measure
		if i < 2 {
			phase = measure.WarmUp
		}
		for k := range each {
			v := int64(100_000 + 1000*k)
			in.Kinds[measure.SendLateness][phase].Add(1000, 1)
			switch {
			case i == 6 || i == 7:
				ages[phase].Add(20e9-int64(i)*1e9-50e6-int64(k)*9e8/int64(each), 1) // a bucket of them is 8 ms wide
				continue
			case phase == measure.Measure:
				came.Add(v, 1)
			default:
				v = 5e9 // the warm-up is slow
			}
			in.Kinds[measure.E2EResponse][phase].Add(v, 1)
		}
		must.Do(t, f.AppendInterval(in))
	}
	for p := range ages {
		must.Do(t, f.AppendCensored(measure.E2EResponse, measure.Phase(p), 0, 20e9, &ages[p]))
	}
	must.Do(t, f.Close())
	return dir, came
}

func TestMissingMessagesCountInTheirSecond(t *testing.T) {
	t.Parallel()
	dir, _ := outage(t, 500)
	m := heatmapOf(t, dir, "e2e")
	got := map[int64]uint64{}
	for _, p := range m.parts {
		for _, n := range p.never[measure.Measure] {
			got[p.from/1e9] += n
		}
	}
	if diff := cmp.Diff(map[int64]uint64{6: 500, 7: 500}, got); diff != "" {
		t.Errorf("by second (-want +got):\n%s", diff)
	}
	cells, _, most := m.cells(0)
	apart := 0
	for _, c := range cells {
		if c.Apart {
			apart++
			if c.From < 6 || c.To > 8 || c.Hi < 11e9 {
				t.Errorf("a field of what never came: %+v", c)
			}
		}
	}
	if apart == 0 || most < 13.9e9 {
		t.Errorf("%d fields of what never came, up to %v ns", apart, most)
	}
}

func TestNothingDelivered(t *testing.T) {
	t.Parallel()
	m := new(heatmap)
	ages := new(measure.Counts)
	ages.Add(4e9, 7)
	ages.Add(2*measure.Highest, 5)
	m.missed(measure.Measure, 10e9, ages)
	if p := m.parts[5]; p.from != 5e9 || len(m.parts) != 10 || len(p.never[measure.Measure])+len(m.parts[6].never[measure.Measure]) != 1 {
		t.Errorf("%d parts, %+v; want 7 messages due at 6 s", len(m.parts), m.parts)
	}
	if n := m.older[tileOf(measure.LowestEquivalent(measure.Highest))]; n != 5 {
		t.Errorf("%v are older than can be told; want 5", m.older)
	}
	if p := m.pack(0); p.Older == "" {
		t.Errorf("packed, %+v lacks them", p)
	}
}

// Parts are merged, and no message is lost.
func TestLongRunHeatmapIsBounded(t *testing.T) {
	t.Parallel()
	dir, seconds := logged(t, 1000, 3)
	m := heatmapOf(t, dir, "e2e")
	if n := len(m.parts); n > mostParts || n < mostParts/2 {
		t.Errorf("1000 seconds are %d parts; at most %d", n, mostParts)
	}
	var n, want uint64
	for _, p := range m.parts {
		for _, c := range inBoth(p.counts) {
			n += c
		}
	}
	for _, c := range seconds {
		want += c.Total()
	}
	if n != want {
		t.Errorf("%d messages are in it; want %d", n, want)
	}
	for i, p := range m.parts {
		if i > 0 && p.from != m.parts[i-1].to {
			t.Errorf("part %d begins at %d, and the one before ends at %d", i, p.from, m.parts[i-1].to)
		}
	}
	cells, _, _ := m.cells(0)
	if len(cells) > mostHeatColumns*(mostHeatRows+1) {
		t.Errorf("its heat map has %d fields", len(cells))
	}
}

// Fills every bucket in every part, which does not fit.
func TestPackedHeatmapFits(t *testing.T) {
	t.Parallel()
	m := &heatmap{each: 1}
	for i := range mostParts {
		p := tiled{from: int64(i) * 1e9, to: int64(i+1) * 1e9, intervals: 1}
		for tile := range tileOf(measure.Highest) + 1 {
			into(&p.counts[measure.Measure], tile, 1000)
		}
		m.parts = append(m.parts, p)
	}
	p := m.pack(0)
	if len(p.Counts) > mostPacked || len(p.From) < 2 {
		t.Errorf("%d parts take %d bytes; at most %d", len(p.From), len(p.Counts), mostPacked)
	}
	b := must.Get(base64.StdEncoding.DecodeString(p.Counts))(t)
	r := bytes.NewReader(b)
	for i := range p.From {
		n, err := binary.ReadUvarint(r)
		var sum uint64
		for range n {
			_, err1 := binary.ReadUvarint(r)
			count, err2 := binary.ReadUvarint(r)
			err = errors.Join(err, err1, err2)
			sum += count
		}
		if parts := uint64(m.parts[i].intervals); err != nil || sum != parts*1000*uint64(tileOf(measure.Highest)+1) {
			t.Fatalf("part %d of %d intervals has %d messages: %v", i, parts, sum, err)
		}
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Error("something follows the last part")
	}
}

// Draws a run with an objective, a scheduling stall and a second dominated by the generator's own lateness.
func TestPageShowsObjectivesAndHostStalls(t *testing.T) {
	t.Parallel()
	dir, _ := logged(t, 12, 200)
	must.Do(t, os.WriteFile(filepath.Join(dir, result.FileEvents), []byte(`{"schema": "weir.events/v1"}
{"t_ns":5000000000,"kind":"hiccup","text":"not woken","duration_ns":250000000}
{"t_ns":7000000000,"kind":"gc","text":"a cycle"}
`), 0o644))
	intervals := length(12)
	c := must.Get(NewCourse(new(result.Result), intervals, dir))(t)
	e := run(t, "jetstream-500")
	e.Course = c
	e.Result.Run.Name = "jetstream-500"
	e.Result.Verdict.SLO = []result.SLO{{Expr: "e2e.p99 <= 3ms", Status: result.Fail}, {Expr: "e2e.p99 <= 300s"}, {Expr: "lost == 0"}}
	e.Result.Host.Hiccups = &result.Hiccups{Count: 10_000, P50NS: 900, P99NS: 30_000, P999NS: 2_000_000, MaxNS: 9_000_000}
	page := html1(t, e, Options{})
	if _, err := look(page); err != nil {
		t.Error(err)
	}
	for what, want := range map[string]int{
		`<path class="rule fail" `:                                              3, // by percentile, of every message, second by second
		"The objective e2e.p99 &lt;= 300s lies outside the chart":               3,
		"The objective lost == 0 lies outside the chart":                        0, // it is no latency
		`<span class="key rule fail"></span>objective e2e.p99 &lt;= 3ms: fail<`: 3,
		"stalls of the host 99 % 30.0 µs":                                       2 + 1, // send, e2e, and the waiting
		`<path class="heat h`:                                                   -1,
	} {
		if got := strings.Count(page, what); got != want && (want >= 0 || got == 0) {
			t.Errorf("%d times %s; want %d", got, what, want)
		}
	}
	if !strings.Contains(page, `<path class="stall" d="M`) || strings.Contains(page, `<title>hiccup at`) || !strings.Contains(page, `<path class="mark often" d="M`) || !strings.Contains(page, `"text":"stall of the host: 250 ms"`) {
		t.Error("the hiccup is not under the axis, or is a stroke too")
	}
	if want := "<h1><span class=\"strong\">" + measured(e.Result) + "</span></h1>"; !strings.Contains(page, want) || !strings.Contains(want, ": latency at 500/s of ") {
		t.Errorf("the title does not say what was measured: %s", want)
	}
	head, _, _ := strings.Cut(page, `<nav aria-label="contents">`)
	if !strings.Contains(head, `class="status"`) || !strings.Contains(head, "<dt>loss</dt>") {
		t.Error("the contents come before the conclusion")
	}
}
