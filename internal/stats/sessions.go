package stats

import "math"

// SessionShare returns the share of sessions of that many messages with at least one worse than
// percentile p, given in percent, if messages are independent: 1 - (p/100)^messages. For p = 99 and
// 100 messages it is 0.634: most users see the 99th percentile. If slow messages come together it
// is smaller.
//
// It is computed from what lies beyond p, which keeps precision if p is near 100 and the share near
// 0 or 1.
//
// Source: the complement of the binomial distribution at 0; put to this use by G. Tene, "How NOT to
// measure latency" (2013).
func SessionShare(p float64, messages uint64) float64 {
	switch {
	case messages == 0 || p >= 100:
		return 0
	case p <= 0:
		return 1
	}
	return -math.Expm1(float64(messages) * math.Log1p((p-100)/100))
}

// SessionPercentile returns the percentile, in percent, for which the given share of sessions of
// that many messages has at least one message worse: for example, which percentile of messages to
// look at for the median session. It is the inverse of SessionShare in p; 100 if the session or the
// share is empty.
func SessionPercentile(share float64, messages uint64) float64 {
	switch {
	case messages == 0 || share <= 0:
		return 100
	case share >= 1:
		return 0
	}
	return 100 + 100*math.Expm1(math.Log1p(-share)/float64(messages))
}

// SessionMessages returns the number of messages in a session for which the given share of sessions
// has at least one worse than percentile p: the inverse of SessionShare in the messages, not
// rounded. It is infinite if no number does.
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
