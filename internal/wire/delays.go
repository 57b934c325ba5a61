package wire

import "slices"

// delayed says that this host delayed weir until an instant, for some time: it sent a message late, or a
// thread that only sleeps woke late.
type delayed struct{ at, by int64 }

// delays holds the longest delay beside each step of time. A delay lies beside the time that it took and
// three times that afterwards: for so long a system that is 75 % busy works off what comes in a burst.
type delays struct {
	from, step int64
	most       []int64
}

const (
	afterwards = 3
	delaySteps = 1 << 12
	leastStep  = 500_000 // ns
)

// newDelays returns the delays of a time. What lies beyond counts at its ends.
func newDelays(from, until int64) delays {
	length := max(until-from, 1)
	d := delays{from: from, step: max(leastStep, length/delaySteps+1)}
	d.most = make([]int64, length/d.step+1)
	return d
}

func (d *delays) index(at int64) int {
	return int(min(max(at-d.from, 0)/d.step, int64(len(d.most)-1)))
}

func (d *delays) add(x delayed) {
	from, to := x.at-x.by, x.at+afterwards*x.by
	if x.by <= 0 || to < d.from || from > d.from+d.step*int64(len(d.most)) {
		return
	}
	for i := d.index(from); i <= d.index(to); i++ {
		d.most[i] = max(d.most[i], x.by)
	}
}

// beside returns the longest delay beside a time, or at from if to is earlier.
func (d *delays) beside(from, to int64) int64 {
	if len(d.most) == 0 {
		return 0
	}
	return slices.Max(d.most[d.index(from) : d.index(max(from, to))+1])
}
