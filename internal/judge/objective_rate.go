package judge

import "github.com/weirmq/weir/result"

func (f figure) findRate(r *result.Result) found {
	t := r.Throughput
	switch {
	case r.Run.MeasureS <= 0 && r.Run.Mode != result.ModeConsume:
		return missing("nothing was measured, so the rate is not known")
	case f.of == "offered" && r.Run.Loop == result.LoopClosed:
		return missing("a closed loop offers no rate: sent.rate is what the system took")
	case f.of == "received" && t.ReceivedPerS == nil && r.MessagesAll.Deliveries() == 0:
		return missing("nothing was received, so the rate is not known")
	case f.of == "received" && t.ReceivedPerS == nil:
		return missing("everything came in one client call: a rate needs more messages")
	}
	received, _ := t.Received()
	return exactly(map[string]float64{
		"offered": t.OfferedPerS, "sent": t.SentPerS, "confirmed": t.ConfirmedPerS, "received": received,
	}[f.of], "per_s")
}
