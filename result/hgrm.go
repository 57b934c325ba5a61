package result

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/weirmq/weir/measure"
)

// ticksPerHalf is how many rows a percentile table has for each halving of the
// distance to 100 %: HdrHistogram's own default.
const ticksPerHalf = 5

// WriteHGRM writes c as HdrHistogram's percentile table, as its Java
// outputPercentileDistribution does, in nanoseconds, with a comment on the
// schema before it. censored is how many samples are not in it because only a
// lower bound of them is known; 0 writes no line about them.
func WriteHGRM(w io.Writer, title string, c *measure.Counts, censored uint64) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#[Schema: %s]\n#[%s, in nanoseconds]\n", SchemaHGRM, title)
	if censored > 0 {
		fmt.Fprintf(&b, "#[Censored = %12d samples, not in this table: see result.json]\n", censored)
	}
	fmt.Fprintf(&b, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")
	percentileRows(c, func(value int64, percentile float64, count uint64) {
		if percentile < 100 {
			fmt.Fprintf(&b, "%12.3f %2.12f %10d %14.2f\n", float64(value), percentile/100, count, 1/(1-percentile/100))
			return
		}
		fmt.Fprintf(&b, "%12.3f %2.12f %10d\n", float64(value), percentile/100, count)
	})
	fmt.Fprintf(&b, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", c.Mean(), c.StdDev())
	fmt.Fprintf(&b, "#[Max     = %12.3f, Total count    = %12d]\n", float64(c.Max()), c.Total())
	// As HdrHistogram counts them: 32 doublings of 2048 values, half of each
	// but the first shared with the one before.
	fmt.Fprintf(&b, "#[Buckets = %12d, SubBuckets     = %12d]\n", 32, 2048)
	_, err := w.Write(b.Bytes())
	return err
}

// percentileRows visits the rows of the table: HdrHistogram's
// PercentileIterator. The steps get finer as the percentile nears 100; a bucket
// that spans several steps has a row for each, the last bucket has one, and one
// more at 100. With n samples that is at most some 5 log2(n) rows.
func percentileRows(c *measure.Counts, row func(value int64, percentile float64, count uint64)) {
	total := c.Total()
	level := 0.0
	var sum uint64
	for v, n := range c.Buckets() {
		sum += n
		value := min(measure.HighestEquivalent(v), c.Max())
		if sum == total {
			row(value, level, sum)
			row(value, 100, sum)
			return
		}
		for at := 100 * float64(sum) / float64(total); at >= level && level < 100; {
			row(value, level, sum)
			halvings := math.Floor(math.Log2(100/(100-level))) + 1
			level += 100 / (ticksPerHalf * math.Pow(2, halvings))
		}
	}
}
