package view

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/result"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
)

func TestNumericKeyValuesParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"5": 5, "1,000": 1000, "10k": 10_000, "0.5": 0.5, "1%": 1, "1KiB": 1024, "64B": 64, "20ms": 2e7, "2m": 1.2e11, "1000/s": 1000, "60/m": 1, "20k/s": 20_000,
	} {
		if got, ok := keyNumber(text); !ok || got != want {
			t.Errorf("%s is %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "max", "file", "yes", "[5]", "1..10"} {
		if got, ok := keyNumber(text); ok {
			t.Errorf("%q is %v; want no number", text, got)
		}
	}
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// ys are the values of a line, without gaps.
func ys(l plot.Line) (out []float64) {
	for _, p := range l.Points {
		if !math.IsNaN(p.Y) {
			out = append(out, p.Y)
		}
	}
	return out
}

func TestNumbersAreLinesInTheirOrder(t *testing.T) {
	t.Parallel()
	c := Variation{ID: "x", Title: "rate", Key: "message.size", Write: whole, Spots: []Spot{
		{Series: "kafka", Key: "10KiB", Value: result.Exactly(50)},
		{Series: "kafka", Key: "64B", Value: result.Exactly(9000)},
		{Series: "kafka", Key: "1KiB", Value: result.Exactly(700), Weak: true},
		{Series: "nats", Key: "64B", Value: result.Exactly(10)},
		{Series: "nats", Key: "64B", Value: result.Exactly(30)},
		{Series: "nats", Key: "64B", Value: result.Exactly(20)},
		{Series: "nats", Key: "1KiB", Value: result.Exactly(math.NaN())},
		{Series: "kafka", Key: "1KiB", Value: result.Exactly(600), Printed: true},
	}}.Chart()
	if diff := cmp.Diff([]float64{9000, 700, 50}, ys(c.Lines[0])); diff != "" {
		t.Errorf("kafka (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{600}, ys(c.Lines[1])); diff != "" {
		t.Errorf("the article (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{20}, ys(c.Lines[2])); diff != "" {
		t.Errorf("the median of three runs (-want +got):\n%s", diff)
	}
	if b := c.Bands[1].Points; len(b) != 1 || b[0].Lo != 10 || b[0].Hi != 30 {
		t.Errorf("the room of three runs is %+v; want 10 to 30", b)
	}
	if !c.X.Log || !c.Y.Log || c.X.Ticks[0].Text != "64B" || c.X.Ticks[2].Text != "10KiB" {
		t.Errorf("axes %+v and %+v; want logarithms, and the values of the key", c.X, c.Y)
	}
	if got := c.Lines[0].Points[1].Form; got != plot.Hollow {
		t.Errorf("too few samples are %v; want hollow", got)
	}
	mentions(t, c.Desc, "nats, message.size 64B: 20, median of 3 runs from 10 to 30", "kafka, message.size 1KiB: 600 (the article)")
}

func TestNearbyValuesUseLinearAxis(t *testing.T) {
	t.Parallel()
	c := Variation{ID: "x", Key: "topology.producers", Write: whole, Spots: []Spot{{Series: "a", Key: "1", Value: result.Exactly(10)}, {Series: "a", Key: "4", Value: result.Exactly(30)}}}.Chart()
	if c.X.Log || c.Y.Log || c.Y.Min != 0 {
		t.Errorf("axes %+v and %+v; want linear ones, that of the figure from 0", c.X, c.Y)
	}
}

func TestWordsAreBars(t *testing.T) {
	t.Parallel()
	c := Variation{ID: "x", Key: "storage", Write: whole, Spots: []Spot{
		{Series: "a", Key: "file", Value: result.Exactly(10)},
		{Series: "b", Key: "file", Value: result.Exactly(20), Weak: true},
		{Series: "a", Key: "memory", Value: result.Exactly(30)},
		{Series: "a", Key: "memory", Value: result.Exactly(40), Printed: true},
	}}.Chart()
	if len(c.Bars) != 3 || c.Bars[0].Y != 10 || c.Bars[1].Class != "s2 weak" || c.Bars[2].From < 1 || len(c.Lines) != 1 {
		t.Errorf("bars %+v, lines %+v; want three bars and the article's dot", c.Bars, c.Lines)
	}
	if c.X.Ticks[1].Text != "memory" {
		t.Errorf("ticks %+v", c.X.Ticks)
	}
}

func TestSingleValueIsNotCharted(t *testing.T) {
	t.Parallel()
	if c := (Variation{Write: whole, Spots: []Spot{{Series: "a", Key: "1", Value: result.Exactly(1)}, {Series: "b", Key: "1", Value: result.Exactly(2)}}}).Chart(); c != nil {
		t.Errorf("%+v; want none", c)
	}
}

func TestCaptionNotesOmittedSeries(t *testing.T) {
	t.Parallel()
	f := Variation{ID: "x", Key: "n", Write: whole}
	for i := range layout.MostSeries + 2 {
		for _, k := range []string{"1", "2"} {
			f.Spots = append(f.Spots, Spot{Series: fmt.Sprint("s", i), Key: k, Value: result.Exactly(1)})
		}
	}
	c := f.Chart()
	if len(c.Legend) != layout.MostSeries || !strings.Contains(c.Caption, "The first 18 of 20 are drawn.") {
		t.Errorf("%d keys, caption %q", len(c.Legend), c.Caption)
	}
	var classes []string
	for _, k := range c.Legend {
		if slices.Contains(classes, k.Class) {
			t.Errorf("class %s is there twice", k.Class)
		}
		classes = append(classes, k.Class)
	}
}

func TestBoundDrawnAsArrow(t *testing.T) {
	t.Parallel()
	for key, next := range map[string]string{"1": "2", "file": "memory"} {
		c := Variation{ID: "x", Key: "k", Write: whole, Spots: []Spot{
			{Series: "a", Key: key, Value: result.Exactly(10)}, {Series: "a", Key: next, Value: result.AtLeast(30)},
		}}.Chart()
		arrows := 0
		for _, l := range c.Lines {
			for _, p := range l.Points {
				if p.Form == plot.Upward && p.Y == 30 {
					arrows++
				}
			}
		}
		if arrows != 1 || !strings.Contains(c.Desc, next+": >= 30") || !strings.Contains(c.Caption, "An arrow: at least so much") {
			t.Errorf("over %s: %d arrows, %q, %q; want one arrow, and its meaning", key, arrows, c.Desc, c.Caption)
		}
	}
}

func TestEachRunOfABarIsDrawn(t *testing.T) {
	t.Parallel()
	c := Variation{ID: "x", Key: "storage", Write: whole, Spots: []Spot{
		{Series: "a", Key: "file", Value: result.Exactly(30)},
		{Series: "a", Key: "file", Value: result.AtLeast(120)},
		{Series: "a", Key: "file", Value: result.Exactly(12)},
		{Series: "a", Key: "memory", Value: result.Exactly(50)},
		{Series: "b", Key: "memory", Value: result.AtLeast(9)},
		{Series: "b", Key: "memory", Value: result.Exactly(20)},
		{Series: "b", Key: "memory", Value: result.Exactly(30)},
	}}.Chart()
	if len(c.Lines) != 2 || c.Lines[0].Class != "s1 spread" {
		t.Fatalf("lines %+v; want the runs of a at file, and of b at memory", c.Lines)
	}
	if diff := cmp.Diff([]float64{12, 30, 120}, ys(c.Lines[0])); diff != "" {
		t.Errorf("the runs of a (-want +got):\n%s", diff)
	}
	l := c.Lines[0].Points
	if l[0].X != l[2].X || l[0].X <= c.Bars[0].From || l[0].X >= c.Bars[0].To || l[2].Form != plot.Upward || l[0].Form != plot.Hollow {
		t.Errorf("they are drawn as %+v; want a line in the bar %+v, and an arrow", l, c.Bars[0])
	}
	mentions(t, c.Desc, "a, storage file: 30, median of 3 runs from 12 to >= 120", "b, storage memory: >= 20, median of 3 runs from >= 9 to >= 30")
	if !strings.Contains(c.Caption, "each run on a line from the lowest to the highest") || !strings.Contains(c.Caption, "An arrow: at least so much") {
		t.Errorf("the caption is %q", c.Caption)
	}
}
