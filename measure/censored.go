package measure

import "iter"

// Censored holds samples of which only a lower bound is known: their age when the wait was
// abandoned, each with the instant from which it counts. The instants matter because failures and
// losses mostly come in clusters. The zero value is empty and ready; it is used by one goroutine at
// a time.
type Censored struct {
	Ages    Counts
	cells   []uint64 // samples by their instant
	shift   uint     // log2 of a cell's width
	undated uint64
}

// mostCells is the maximum number of cells of time; beyond that their width doubles. A sample's
// cell thus gives its instant to 1/2,048 of the run.
const (
	mostCells = 4096
	leastCell = 20 // 1 ms, as a power of 2
)

// Add counts n samples that have waited since an instant, in ns since the epoch, and had that age
// at the end.
func (c *Censored) Add(since, age int64, n uint64) {
	c.Ages.Add(age, n)
	if n == 0 {
		return
	}
	if c.cells == nil {
		c.cells, c.shift = make([]uint64, mostCells), leastCell
	}
	since = max(since, 0)
	for since>>c.shift >= mostCells {
		for i := range mostCells / 2 {
			c.cells[i] = c.cells[2*i] + c.cells[2*i+1]
		}
		clear(c.cells[mostCells/2:])
		c.shift++
	}
	c.cells[since>>c.shift] += n
}

// AddUndated counts n samples of that age whose instants are unknown.
func (c *Censored) AddUndated(age int64, n uint64) {
	c.Ages.Add(age, n)
	c.undated += n
}

// Total returns how many samples there are.
func (c *Censored) Total() uint64 { return c.Ages.Total() }

// Dated reports whether the instants of all samples are known.
func (c *Censored) Dated() bool { return c.undated == 0 }

// Cells yields the dated samples in order of time: the span in which they began to wait, and their
// number.
func (c *Censored) Cells() iter.Seq2[Span, uint64] {
	return func(yield func(Span, uint64) bool) {
		for i, n := range c.cells {
			if n > 0 && !yield(Span{int64(i) << c.shift, int64(i+1) << c.shift}, n) {
				return
			}
		}
	}
}

// A Span is the time [From, To), in ns since the epoch.
type Span struct{ From, To int64 }
