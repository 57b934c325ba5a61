package plot

import "math"

// An Axis goes from Min to Max, which are finite and different.
type Axis struct {
	Min, Max float64
	Log      bool // logarithmic: Min is above 0, and lower values lie at it
	Ticks    []Tick
	Label    string
	Inside   bool // the texts of a Y axis stand above their grid lines, within the chart
}

// A Tick is a grid line and its label; "" for none.
type Tick struct {
	At   float64
	Text string
	Head bool // of the lines below it; only where texts stand inside
}

// part is the position of a value on the axis, 0 to 1, clamped to its ends.
func (a *Axis) part(v float64) float64 {
	low, high := a.Min, a.Max
	if a.Log {
		v, low, high = math.Log10(math.Max(v, low)), math.Log10(low), math.Log10(high)
	}
	part := (v - low) / (high - low)
	if math.IsNaN(part) {
		return 0
	}
	return math.Max(0, math.Min(1, part))
}

// largest bounds the values on an axis: beyond it floating point has no useful steps.
const largest = 1e18

// Linear returns an axis from low to high with at most that many steps, each 1, 2 or 5 times a power of
// ten.
func Linear(low, high float64, most int, label string, text func(float64) string) Axis {
	low, high = bounds(low, high)
	raw := (high - low) / float64(max(most, 1))
	size := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, times := range []float64{1, 2, 5, 10} {
		if size*times >= raw*(1-1e-9) {
			return Stepped(low, high, size*times, label, text)
		}
	}
	return Stepped(low, high, size*10, label, text)
}

// Stepped returns an axis from low to high with a tick at each multiple of step.
func Stepped(low, high, step float64, label string, text func(float64) string) Axis {
	const mostTicks = 100
	low, high = bounds(low, high)
	a := Axis{Min: low, Max: high, Label: label}
	first := math.Ceil(low/step - 1e-9)
	for i := range mostTicks {
		at := (first + float64(i)) * step
		if !(at <= high+step*1e-9) {
			break
		}
		a.Ticks = append(a.Ticks, Tick{At: at, Text: text(at)})
	}
	return a
}

// bounds makes valid axis ends of two values.
func bounds(low, high float64) (float64, float64) {
	low, high = finite(low), finite(high)
	if !(high > low) {
		return low, low + math.Max(1, math.Abs(low)/1e3)
	}
	return low, high
}

// finite clamps a value to what an axis can show.
func finite(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return math.Max(-largest, math.Min(largest, v))
}

// Log returns a logarithmic axis that covers low and high, both at least 1, with ends at 1, 2 or 5 times a
// power of ten.
func Log(low, high float64, label string, text func(float64) string) Axis {
	low = math.Max(1, finite(low))
	high = math.Max(low, finite(high))
	var steps []float64
	for ten := math.Pow(10, math.Floor(math.Log10(low))); ten <= high*10; ten *= 10 {
		steps = append(steps, ten, 2*ten, 5*ten)
	}
	first, last := 0, len(steps)-1
	for steps[first+1] <= low*(1+1e-9) {
		first++
	}
	for last > first+1 && steps[last-1] >= high*(1-1e-9) {
		last--
	}
	steps = steps[first : last+1]
	a := Axis{Min: steps[0], Max: steps[len(steps)-1], Log: true, Label: label}
	for _, at := range steps {
		lead := math.Round(at / math.Pow(10, math.Floor(math.Log10(at)+1e-9)))
		t := Tick{At: at}
		switch {
		case lead == 1, len(steps) <= 7:
			t.Text = text(at)
		case len(steps) > 13:
			continue // the tens are enough lines
		}
		a.Ticks = append(a.Ticks, t)
	}
	return a
}
