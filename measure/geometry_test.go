package measure

import (
	"math/rand/v2"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weirmq/weir/internal/must"
)

// reference is an HdrHistogram with the same geometry.
func reference() *hdr.Histogram { return hdr.New(Lowest, Highest, Digits) }

func TestBucketsAreHdrHistograms(t *testing.T) {
	if got := len(reference().Export().Counts); got != numCounts {
		t.Fatalf("HdrHistogram has %d counts, we have %d", got, numCounts)
	}
	if got := indexOf(Highest); got != LastBucket {
		t.Fatalf("bucket of Highest is %d, constant says %d", got, LastBucket)
	}
	h := reference()
	for i := range LastBucket + 1 {
		must.Do(t, h.RecordValue(BucketLowest(i)))
	}
	counts := h.Export().Counts
	for i := range LastBucket + 1 {
		if counts[i] != 1 {
			t.Fatalf("HdrHistogram counts the lowest value of our bucket %d (%d ns) elsewhere", i, BucketLowest(i))
		}
	}
	i := 0
	for _, bar := range h.Distribution() {
		if bar.Count == 0 {
			continue
		}
		if bar.From != BucketLowest(i) || bar.To != highestOf(i) {
			t.Fatalf("bucket %d: ours is %d to %d, HdrHistogram's %d to %d", i, BucketLowest(i), highestOf(i), bar.From, bar.To)
		}
		i++
	}
}

func TestEveryValueFallsInItsBucket(t *testing.T) {
	check := func(v int64) {
		t.Helper()
		i := indexOf(v)
		if BucketLowest(i) > v || highestOf(i) < v {
			t.Fatalf("%d is in bucket %d, which is %d to %d", v, i, BucketLowest(i), highestOf(i))
		}
		if w := highestOf(i) - BucketLowest(i); w*1024 > v {
			t.Fatalf("bucket of %d is %d wide: more than 1/1024", v, w+1)
		}
	}
	for i := range LastBucket {
		check(BucketLowest(i))
		check(highestOf(i))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		check(rnd.Int64N(Highest+1) >> rnd.IntN(42))
	}
}
