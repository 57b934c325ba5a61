package plot

import "math"

// Thin returns at most some three times bins of the points: of each of so many
// equal runs of points the lowest and the highest, in their order, so that
// no peak is lost. A run with a gap in it is followed by one. Where there are not
// more points than twice bins they are returned as they are.
func Thin(points []Point, bins int) []Point {
	if len(points) <= 2*bins || bins < 1 {
		return points
	}
	out := make([]Point, 0, 3*bins)
	for b := range bins {
		part := points[b*len(points)/bins : (b+1)*len(points)/bins]
		low, high, gap := -1, -1, false
		for i, p := range part {
			switch {
			case math.IsNaN(p.Y):
				gap = true
				continue
			case low < 0:
				low, high = i, i
			}
			if p.Y < part[low].Y {
				low = i
			}
			if p.Y > part[high].Y {
				high = i
			}
		}
		if low >= 0 {
			out = append(out, part[min(low, high)])
			if low != high {
				out = append(out, part[max(low, high)])
			}
		}
		if gap {
			out = append(out, Point{X: part[len(part)-1].X, Y: math.NaN()})
		}
	}
	return out
}
