package judge

import "github.com/weirmq/weir/result"

func (f figure) findRate(r *result.Result) found {
	t := r.Throughput
	switch {
	case r.Run.MeasureS <= 0 && r.Run.Mode != result.ModeConsume:
		return missing("objective.no_window")
	case f.of == "offered" && r.Run.Loop == result.LoopClosed:
		return missing("objective.no_offered")
	case f.of == "received" && t.ReceivedPerS == nil && r.MessagesAll.Deliveries() == 0:
		return missing("objective.received_nothing")
	case f.of == "received" && t.ReceivedPerS == nil:
		return missing("objective.one_call")
	}
	received, _ := t.Received()
	return exactly(map[string]float64{
		"offered": t.OfferedPerS, "sent": t.SentPerS, "confirmed": t.ConfirmedPerS, "received": received,
	}[f.of], "per_s")
}
