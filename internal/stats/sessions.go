package stats

import "math"

// SessionShare returns which share of sessions of so many messages meet at least
// one that is worse than percentile p, given in percent, if messages are
// independent: 1 - (p/100)^messages. Of p = 99 and 100 messages it is 0.634: most
// users meet the 99th percentile. Messages that are slow together make it less.
//
// It is computed from what lies beyond p, which keeps its digits where p is near
// 100 and the share near 0 or 1.
//
// Source: the complement of the binomial distribution at 0; put to this use by G.
// Tene, "How NOT to measure latency" (2013).
func SessionShare(p float64, messages uint64) float64 {
	switch {
	case messages == 0 || p >= 100:
		return 0
	case p <= 0:
		return 1
	}
	return -math.Expm1(float64(messages) * math.Log1p((p-100)/100))
}

// SessionPercentile returns the percentile, in percent, that the given share of
// sessions of so many messages meets at least one message worse than: which
// percentile of messages to look at for the median session, say. It is the
// inverse of SessionShare in p; 100 where the session or the share is empty.
func SessionPercentile(share float64, messages uint64) float64 {
	switch {
	case messages == 0 || share <= 0:
		return 100
	case share >= 1:
		return 0
	}
	return 100 + 100*math.Expm1(math.Log1p(-share)/float64(messages))
}

// SessionMessages returns the number of messages in a session such that the given
// share of sessions meets at least one worse than percentile p: the inverse of SessionShare
// in the messages, not rounded. It is infinite where no number does.
func SessionMessages(p, share float64) float64 {
	switch {
	case share <= 0:
		return 0
	case p >= 100 || share >= 1:
		return math.Inf(1)
	case p <= 0:
		return 1
	}
	return math.Log1p(-share) / math.Log1p((p-100)/100)
}
