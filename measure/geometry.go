package measure

import "math/bits"

// The geometry of every histogram: that of an HdrHistogram with these three parameters. The bucket
// boundaries are identical, so that HdrHistogram's logs and tools need no conversion.
const (
	Lowest  = 1                 // ns: the lowest discernible value
	Highest = 3_600_000_000_000 // ns, 1 h: the highest trackable value; larger ones overflow
	Digits  = 3                 // significant decimal digits: buckets are at most 1/1024 wide
)

// What follows from them (HdrHistogram's AbstractHistogram.init): the smallest
// power of two that holds 2*10^Digits values one apart is 2048; each further
// doubling adds its upper half, 1024 buckets, until Highest is covered.
const (
	halfBits  = 10                    // log2 of half the values of the first doubling
	half      = 1 << halfBits         // 1024
	fullMask  = 2*half - 1            // values up to it have a bucket of their own
	doublings = 32                    // 2048 << 31 is the first above Highest
	numCounts = doublings*half + half // 33,792
)

// LastBucket is the index of Highest's bucket, the last that counts anything; value 0 has index 0,
// as in an HdrHistogram's array of counts. The few buckets above it, which complete the last
// doubling, stay empty.
const LastBucket = (doublings-1)<<halfBits + Highest>>(doublings-1)

// indexOf returns the bucket of v, which is 0 to Highest.
func indexOf(v int64) int {
	shift := shiftOf(v)
	return shift<<halfBits + int(v>>shift)
}

// shiftOf returns the binary logarithm of the width of v's bucket.
func shiftOf(v int64) int {
	return bits.Len64(uint64(v)|fullMask) - (halfBits + 1)
}

// BucketLowest returns the lowest value of the bucket with that index, which is 0 to LastBucket.
func BucketLowest(index int) int64 {
	if index < 2*half {
		return int64(index)
	}
	shift := index>>halfBits - 1
	return int64(index-shift<<halfBits) << shift
}

// highestOf returns the highest value of a bucket.
func highestOf(index int) int64 { return BucketLowest(index+1) - 1 }

// LowestEquivalent returns the lowest value that shares v's bucket. v below 0
// counts as 0 and above Highest as Highest.
func LowestEquivalent(v int64) int64 { return BucketLowest(indexOf(clamp(v))) }

// HighestEquivalent returns the highest value that shares v's bucket. v below 0
// counts as 0 and above Highest as Highest.
func HighestEquivalent(v int64) int64 { return highestOf(indexOf(clamp(v))) }

func clamp(v int64) int64 { return min(max(v, 0), Highest) }
