package plot

import "math"

// Thin reduces points to about three times bins: it keeps the lowest and the highest of each of bins equal
// runs of points, in order, so that no peak is lost, and adds a gap after a run that contains one. Up to
// twice bins points are returned unchanged.
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
