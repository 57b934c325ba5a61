package plot

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// wellFormed reads a chart as XML, strictly, and refuses coordinates that are none.
func wellFormed(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if a.Name.Local != "class" && a.Name.Local != "id" && (strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf")) {
					t.Errorf("%s of %s is %s", a.Name.Local, e.Name.Local, a.Value)
				}
			}
		}
	}
}

func words(v float64) string { return fmt.Sprint(v) }

func example() *Chart {
	nan, inf := math.NaN(), math.Inf(1)
	return &Chart{
		ID: "c", Title: "a <b> & \"c\"", Desc: "d ]]> e\x00", Height: 300,
		X: Linear(0, 10, 5, "x", words), Y: Log(1, 1e6, "y", words),
		Spans: []Span{{To: 2, Text: "warm-up"}, {From: 8, To: nan, Text: "drain"}, {From: 4, To: 5, Text: "kill", Class: "fault", Series: 8}},
		Bands: []Band{{"s1", []BandPoint{{0, 1, 10}, {1, 2, inf}, {2, nan, 3}, {3, 1, 2}, {4, 0, 9}}, 1}},
		Lines: []Line{
			{Class: "s1", Series: 6, Points: []Point{{X: 0, Y: 10}, {X: 1, Y: nan}, {X: 2, Y: 100}, {X: 3, Y: nan}, {X: 4, Y: 5}, {X: 5, Y: -3}}},
			{Class: "s2", Dots: true, Points: []Point{{X: 1, Y: 1, Text: "<x>"}, {X: 2, Y: 2, Form: Hollow}, {X: 3, Y: inf, Form: Upward}, {X: 6, Y: 3, Form: Square}, {X: 4, Y: nan}}},
		},
		Marks:   []Mark{{X: 5, Text: "<gc>", Class: "often"}, {X: nan, Text: "y", Tall: true}},
		Columns: []Column{{0, 1, "a<b"}},
		Cells:   []Cell{{0, 1, 10, 20, 3, false}, {1, nan, 5, 2, 99, true}, {1, 2, 5, inf, -1, true}},
		Bars:    []Bar{{From: 1, To: 2, Y: 100, Class: "s1 weak", Series: 1, Text: "<bar>"}, {From: 2, To: 3, Y: nan}, {From: 3, To: nan, Y: 5}, {From: 4, To: 5, Y: inf}},
		Rules:   []Rule{{50, "limit <=", "slo", 7}, {nan, "none", "", 8}, {1e9, "beyond", "", 9}},
		Under:   []Mark{{X: 2, To: 3, Text: "<stall>", Class: "stall"}, {X: nan, To: inf}},
	}
}

func TestChartIsAlwaysWellFormed(t *testing.T) {
	t.Parallel()
	svg := example().SVG()
	wellFormed(t, svg)
	for _, bare := range []string{"<b>", "<x>", "<gc>", "a<b", "<stall>", "<bar>", "limit <="} {
		if strings.Contains(svg, bare) {
			t.Errorf("%s is not escaped", bare)
		}
	}
	wellFormed(t, (&Chart{Height: 100}).SVG())
}

// TestRuleBeyondAxisIsNotDrawn: at the edge it would say that the limit is there. A rule has no text in the chart, where
// curves would cross it, but its number in the legend.
func TestRuleBeyondAxisIsNotDrawn(t *testing.T) {
	t.Parallel()
	svg := example().SVG()
	if n := strings.Count(svg, `<path class="rule `); n != 1 {
		t.Errorf("%d rules are drawn; want the one within the axis", n)
	}
	for what, want := range map[string]int{`class="heat h3"`: 1, `class="heat h6"`: 0, `class="heat apart h1"`: 1, `class="square"`: 1, `<path class="stall"`: 1, `<rect class="bar"`: 2, `>7</text>`: 1, `>9</text>`: 0, `limit &lt;=</title>`: 1, `limit`: 1} {
		if got := strings.Count(svg, what); got != want {
			t.Errorf("%d times %s; want %d", got, what, want)
		}
	}
}

// TestStripBelowAxisAvoidsTicks: what it shows lies between the axis and the
// words of its ticks.
func TestStripBelowAxisAvoidsTicks(t *testing.T) {
	t.Parallel()
	c := &Chart{Height: 180, X: Linear(0, 10, 5, "", words), Y: Linear(0, 100, 5, "", words), Under: []Mark{}}
	if svg := c.SVG(); !strings.Contains(svg, `d="M76 26V116H690"`) || !strings.Contains(svg, `x="76" y="147">0<`) {
		t.Errorf("the axis is not ten units higher, or its ticks are elsewhere:\n%s", svg)
	}
}

// A fault has the number of its name in the legend, however short it is and whatever lies beside it.
func TestSpansAreNamedOrNumbered(t *testing.T) {
	t.Parallel()
	c := &Chart{Height: 180, X: Linear(0, 1000, 5, "", words), Y: Linear(0, 100, 5, "", words), Spans: []Span{
		{To: 1, Text: "warm-up"},
		{To: 400, Text: "broad"},
		{From: 500, To: 501, Text: "first", Class: "fault", Series: 3},
		{From: 510, To: 511, Text: "second", Class: "fault", Series: 4},
	}}
	svg := c.SVG()
	for text, want := range map[string]bool{">broad<": true, ">warm-up<": false, ">first<": false, `x="386" y="42" data-n="3">3<`: true, `x="402" y="42" data-n="4">4<`: true} {
		if strings.Contains(svg, text) != want {
			t.Errorf("%s is there: %v:\n%s", text, !want, svg)
		}
	}
}

func TestAGapIsAGap(t *testing.T) {
	t.Parallel()
	c := &Chart{Height: 180, X: Linear(0, 10, 5, "", words), Y: Linear(0, 100, 5, "", words)}
	c.Lines = []Line{{Class: "s1", Points: []Point{{X: 0, Y: 0}, {X: 1, Y: 100}, {X: 2, Y: math.NaN()}, {X: 5, Y: 50}, {X: 6, Y: math.NaN()}, {X: 9, Y: 0}, {X: 10, Y: 0}}}}
	// Two points joined, one alone as a dot, two joined; nothing at 2 and 6.
	if want := `d="M76 126l61.4-100m245.6 50h.1m245.5 50h61.4"`; !strings.Contains(c.SVG(), want) {
		t.Errorf("no %s in\n%s", want, c.SVG())
	}
}

func TestAxesHaveRoundTicksCoveringValues(t *testing.T) {
	t.Parallel()
	texts := func(a Axis) (out []string) {
		for _, x := range a.Ticks {
			out = append(out, x.Text)
		}
		return out
	}
	for name, tt := range map[string]struct {
		axis     Axis
		want     []string
		min, max float64
	}{
		"linear":            {Linear(0, 1000, 5, "", words), []string{"0", "200", "400", "600", "800", "1000"}, 0, 1000},
		"linear and small":  {Linear(0, 3, 6, "", words), []string{"0", "0.5", "1", "1.5", "2", "2.5", "3"}, 0, 3},
		"linear of nothing": {Linear(0, 0, 4, "", words), []string{"0", "0.5", "1"}, 0, 1},
		"by steps":          {Stepped(0.5, 31, 10, "", words), []string{"10", "20", "30"}, 0.5, 31},
		"few steps by log":  {Log(120, 900, "", words), []string{"100", "200", "500", "1000"}, 100, 1000},
		"tens by log":       {Log(30, 3e6, "", words), []string{"100", "1000", "10000", "100000", "1e+06"}, 20, 5e6},
		"one value by log":  {Log(100, 100, "", words), []string{"100", "200"}, 100, 200},
		"below one by log":  {Log(0, 0, "", words), []string{"1", "2"}, 1, 2},
	} {
		if got := texts(tt.axis); !slices.Equal(got, tt.want) || tt.axis.Min != tt.min || tt.axis.Max != tt.max {
			t.Errorf("%s: %q from %v to %v; want %q from %v to %v", name, got, tt.axis.Min, tt.axis.Max, tt.want, tt.min, tt.max)
		}
	}
}

func TestNoAxisIsWithoutBounds(t *testing.T) {
	t.Parallel()
	values := []float64{math.Inf(-1), -math.MaxFloat64, -1, 0, math.SmallestNonzeroFloat64, 1, 1e18, math.MaxFloat64, math.Inf(1), math.NaN()}
	for _, low := range values {
		for _, high := range values {
			for _, a := range []Axis{Linear(low, high, 5, "", words), Log(low, high, "", words), Stepped(low, high, 1, "", words)} {
				if len(a.Ticks) > 100 {
					t.Errorf("from %v to %v: %d ticks", low, high, len(a.Ticks))
				}
				c := &Chart{Height: 100, X: a, Y: a, Lines: []Line{{Points: []Point{{X: low, Y: high}, {X: high, Y: low}}, Dots: true}}}
				wellFormed(t, c.SVG())
			}
		}
	}
}

func TestThinningKeepsPeaksAndGaps(t *testing.T) {
	t.Parallel()
	var points []Point
	for i := range 86_400 {
		y := float64(i % 7)
		switch {
		case i == 50_000:
			y = 999
		case i == 60_000:
			y = -5
		case i >= 70_000 && i < 71_000:
			y = math.NaN()
		}
		points = append(points, Point{X: float64(i), Y: y})
	}
	thin := Thin(points, 400)
	if n := len(thin); n > 1200 || n < 400 {
		t.Errorf("%d points are left", n)
	}
	for _, want := range []Point{{X: 50_000, Y: 999}, {X: 60_000, Y: -5}} {
		if !slices.Contains(thin, want) {
			t.Errorf("%+v is lost", want)
		}
	}
	gap := false
	for i, p := range thin {
		if i > 0 && p.X < thin[i-1].X {
			t.Fatalf("%v comes after %v", p.X, thin[i-1].X)
		}
		gap = gap || math.IsNaN(p.Y)
	}
	if !gap {
		t.Error("the gap is lost")
	}
	if got := Thin(points[:700], 400); len(got) != 700 {
		t.Errorf("700 points became %d", len(got))
	}
}

// Lines that end at one place have numbers below each other; a gap at the end does not hide a number.
func TestLinesEndWithTheirNumbers(t *testing.T) {
	t.Parallel()
	line := func(n int, last float64) Line {
		return Line{Class: "s1", Series: n, Points: []Point{{X: 0, Y: 1}, {X: 5, Y: 5}, {X: 9, Y: last}}}
	}
	c := &Chart{ID: "c", Height: 300, X: Axis{Max: 10}, Y: Axis{Max: 10}, Lines: []Line{line(1, 5), line(2, 5), line(3, math.NaN())}}
	numbers := regexp.MustCompile(`<text class="number" x="([\d.]+)" y="([\d.]+)" data-n="(\d)">(\d)</text>`)
	all := numbers.FindAllStringSubmatch(c.SVG(), -1)
	if len(all) != 3 || all[0][2] == all[1][2] || all[1][2] == all[2][2] || all[2][1] >= all[0][1] {
		t.Errorf("%q; want three numbers, each below the one before, and the third where its line ends", all)
	}
	c.Lines = c.Lines[:1]
	if n := len(numbers.FindAllString(c.SVG(), -1)); n != 0 {
		t.Errorf("%d numbers of a single line", n)
	}
	loose := Line{Class: "s2", Series: 2, Loose: true, Dots: true, Points: []Point{{X: 1, Y: 1}, {X: 9, Y: 9}}}
	c.Lines = []Line{loose, {Class: "s1", Series: 1, Loose: true, Dots: true, Points: []Point{{X: 2, Y: 2}}}}
	if svg := c.SVG(); numbers.MatchString(svg) || strings.Contains(svg, `class="line`) || strings.Count(svg, "<circle") != 3 {
		t.Errorf("points that are not joined have a number or a line: %s", svg)
	}
}

// Colour is not the only sign: signed points and bars of several entries have the entry's number, where it has room.
func TestPointsAndBarsHaveTheirNumbers(t *testing.T) {
	t.Parallel()
	numbers := regexp.MustCompile(`<text class="number ([a-z ]+)" x="([\d.]+)" y="([\d.]+)" data-n="(\d)">`)
	found := func(c *Chart) (all []string) {
		for _, m := range numbers.FindAllStringSubmatch(c.SVG(), -1) {
			all = append(all, m[4]+" "+m[1])
		}
		return all
	}
	point := func(n int) Line {
		return Line{Class: "s1", Series: n, Loose: true, Signed: true, Dots: true, Points: []Point{{X: 1, Y: 5, Form: Square}, {X: 3, Y: math.NaN()}}}
	}
	c := &Chart{ID: "c", Height: 300, X: Axis{Max: 10}, Y: Axis{Max: 10}, Lines: []Line{point(2), point(1)}}
	if got := found(c); !slices.Equal(got, []string{"1 end", "2 end"}) {
		t.Errorf("the points have the numbers %q", got)
	}
	c.Lines = nil
	c.Bars = []Bar{{From: 1, To: 2, Y: 3, Series: 1}, {From: 2, To: 2.3, Y: 3, Series: 2}, {From: 3, To: 3.1, Y: 3, Series: 3}}
	if got := found(c); !slices.Equal(got, []string{"1 mid", "2 mid n"}) {
		t.Errorf("the bars have the numbers %q", got)
	}
	for i := range c.Bars {
		c.Bars[i].Series = 1
	}
	if got := found(c); got != nil {
		t.Errorf("bars of one entry have the numbers %q", got)
	}
}

// A path is short, and its rounded points do not drift.
func TestPathIsRelativeWithoutDrift(t *testing.T) {
	t.Parallel()
	var d path
	for _, step := range []func(){
		func() { d.move(76, 126.04) }, func() { d.line(76.5, 126) }, func() { d.line(99, 126) }, func() { d.line(99, 120.5) },
		func() { d.line(99.3, 120.2) }, func() { d.line(98.3, 121.2) }, func() { d.line(98.04, 121.2) }, func() { d.move(100, 100) }, func() { d.dot() },
		func() { d.rect(1, 2, 3, 4) }, func() { d.move(1, 2) }, func() { d.line(1, 2) },
	} {
		step()
	}
	if got, want := d.String(), "M76 126h23v-5.5l.3-.3-1 1h-.3m2-21.2h.1m-99.1-98h3v4h-3zm0 0"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	d = path{}
	d.move(0, 0)
	for i := range 1000 {
		d.line(float64(i+1)*0.1449, float64(i%2))
	}
	x := 0.0
	for i, n := range regexp.MustCompile(`-?(\d*\.\d+|\d+)`).FindAllString(strings.TrimPrefix(d.String(), "M0 0"), -1) {
		v := must.Get(strconv.ParseFloat(n, 64))(t)
		if i > 0 && i%2 == 1 { // after the first, a level stroke, come pairs
			x += v
		} else if i == 0 {
			x = v
		}
	}
	if math.Abs(x-144.9) > 0.05 {
		t.Errorf("the path ends at %v; want 144.9", x)
	}
}

// Marks that overlap are one, and cells of one shade above each other are one.
func TestWhatTouchesIsOneShape(t *testing.T) {
	t.Parallel()
	c := &Chart{
		Height: 190, X: Axis{Max: 100}, Y: Axis{Max: 10},
		Under: []Mark{{X: 0, To: 10, Class: "stall"}, {X: 5, To: 20, Class: "stall"}, {X: 7, To: 8, Class: "stall"}, {X: 50, To: 60, Class: "stall"}},
		Cells: []Cell{{0, 50, 0, 2, 1, false}, {0, 50, 2, 5, 1, false}, {0, 50, 5, 6, 2, false}, {0, 50, 6, 7, 2, true}, {50, 100, 0, 2, 1, false}},
	}
	svg := c.SVG()
	for what, want := range map[string]string{
		"stall":         "M76 128h61.4v7H76zm61.4 0h61.4v7h-61.4zm245.6 0h61.4v7h-61.4z",
		"heat h1":       "M76 76h307v50H76zm307 30h307v20H383z",
		"heat h2":       "M76 66h307v10H76z",
		"heat apart h2": "M76 56h307v10H76z",
	} {
		got := regexp.MustCompile(`class="` + what + `" d="([^"]*)"`).FindStringSubmatch(svg)
		if len(got) != 2 || strings.Count(got[1], "z") != strings.Count(want, "z") {
			t.Errorf("%s: %q; want as many shapes as %s", what, got, want)
		}
	}
}
