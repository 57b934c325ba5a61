package judge

import (
	"math/rand/v2"
	"testing"

	"github.com/weirmq/weir/result"
)

// short makes a run with that many seconds of warm-up and measurement, offered perS messages a second. Its
// backlog and unconfirmed messages are given per second.
func short(warmup, measured int, perS uint64, backlog, open func(i int) uint64) result.Result {
	var rows []result.Interval
	before := uint64(0)
	for i := range warmup + measured {
		x := result.Interval{TS: float64(i), Phase: "measure", Sent: perS, Confirmed: perS + before - open(i), Backlog: backlog(i)}
		if i < warmup {
			x.Phase = "warmup"
		}
		before = open(i)
		rows = append(rows, x)
	}
	rows = append(rows, result.Interval{TS: float64(warmup + measured), Phase: "drain"})
	in := lasting(float64(perS), rows)
	in.Run.MeasureS = float64(measured)
	in.Run.Loop = result.LoopOpen
	in.Evidence.Subscriptions = 1
	in.Latency.Send.Service = &result.Dist{MeanNS: new(1e6)}
	return in
}

func grows(by uint64) func(int) uint64 {
	return func(i int) uint64 { return by * uint64(i+1) }
}

func TestShortRunDetectsConsumersFallingBehind(t *testing.T) {
	closed := short(2, 1, 155_000, grows(148_000), flat)
	closed.Run.Loop = result.LoopClosed
	for name, x := range map[string]struct {
		in        result.Result
		grown     any // nil: it does not matter
		consumers bool
	}{
		"a second of a closed loop":         {closed, 444_000.0, true},
		"five seconds at half of the rate":  {short(2, 5, 1000, grows(500), flat), 3500.0, true},
		"a fifth that does not come":        {short(2, 8, 1000, grows(200), flat), nil, true},
		"without a warm-up":                 {short(0, 5, 1000, grows(500), flat), nil, true},
		"nothing comes in the only second":  {short(0, 1, 1000, grows(1000), flat), nil, true},
		"confirmations that do not keep up": {short(2, 5, 1000, flat, grows(500)), 3500.0, false},
		"a few messages a second":           {short(2, 5, 10, grows(5), flat), nil, true},
	} {
		c := steady(of(&x.in)).stored()
		grows, consumers := Growing(c)
		if c.Status != result.Suspect || x.grown != nil && c.Values["grown"] != x.grown || !grows || consumers != x.consumers || says(c, "steady.consumers") != x.consumers {
			t.Errorf("%s: %+v; want it suspect, growing by %v", name, c, x.grown)
		}
	}
}

// A brief stall, messages in flight, and a latency that is long but constant.
func TestShortStallIsNotFallingBehind(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 9))
	slow := short(2, 2, 10_000, grows(2000), flat)
	slow.Latency.Send.Service.MeanNS = new(1e9) // 10,000 in flight may be confirmed at once
	closed := short(2, 5, 1000, flat, grows(500))
	closed.Run.Loop = result.LoopClosed
	failed := short(2, 5, 1000, flat, grows(500))
	failed.MessagesAll.Failed = 3500
	filled := short(2, 5, 1000, grows(1000), flat)
	filled.Run.Mode = result.ModeBacklog
	for name, in := range map[string]result.Result{
		"steady":                           short(2, 5, 1000, flat, flat),
		"a backlog that comes and goes":    short(2, 5, 1000, func(int) uint64 { return dice.Uint64N(400) }, flat),
		"consumers stand still at its end": short(2, 1, 1000, func(i int) uint64 { return uint64(i%2*2 + i/2*450) }, flat),
		"a latency of 1.5 s":               short(2, 5, 1000, func(i int) uint64 { return min(1500, 1000*uint64(i+1)) }, flat),
		"a tenth a second, small":          short(2, 3, 1000, grows(90), flat),
		"what is in flight":                slow,
		"a closed loop fills its places":   closed,
		"messages failed":                  failed,
		"a backlog that is filled":         filled,
		"200 ms without a warm-up, 20 % less": func() result.Result {
			in := short(0, 1, 1000, grows(40), flat)
			in.Intervals[0].Sent, in.Intervals[0].Confirmed, in.Intervals[1].TS, in.Run.MeasureS = 200, 200, 0.2, 0.2
			return in
		}(),
	} {
		if c := steady(of(&in)).stored(); c.Status != result.NotRun || !says(c, "steady.short") {
			t.Errorf("%s: %+v; want that it is not checked, and why", name, c)
		}
	}
}
