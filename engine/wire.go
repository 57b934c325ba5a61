package engine

import (
	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/internal/wire"
)

// openWire prepares to record kernel instants, if they are wanted. That takes longer than the time
// between the agreement of the workers and the epoch.
func (r *run) openWire() {
	if !r.cfg.Wire || r.virtual() {
		return
	}
	if r.wireMissing = Unwired(r.cfg.Mode, r.cfg.Definition.Name, r.cfg.Options); r.wireMissing != "" {
		return
	}
	w, err := wire.Open(r.sockets)
	if err != nil {
		r.wireMissing = err.Error()
		return
	}
	r.wire = w
}

// Unwired returns why kernel instants say nothing of runs in a mode with a driver; "" if they may.
func Unwired(m Mode, name string, cfg driver.Config) string {
	switch m {
	case Request:
		return finding.New("wire.request").String()
	case Consume:
		return finding.New("wire.consume").String()
	}
	for _, o := range driver.Options(cfg) {
		if o.Name == "address" || o.Name == "transport" && o.Default == "tcp" {
			return ""
		}
	}
	return finding.New("wire.local", "driver", name).String()
}

// startWire begins to record them.
func (r *run) startWire(clock *pace.Clock) {
	if r.wire == nil {
		return
	}
	subscriptions := 0
	if r.cfg.Mode == Stream && r.assigned.whole() && r.cfg.Correct == nil {
		subscriptions = r.subscriptions()
	}
	r.wire.Start(wire.Config{
		Run: r.cfg.Run, EpochNS: clock.Epoch().MonotonicNS, Now: clock.Now, From: r.from, To: r.to, Subscriptions: subscriptions, Log: r.cfg.Log,
		Hidden: encrypts(driver.Options(r.cfg.Options)), Sized: r.cfg.Payload.Kind == Random, Answered: r.facts.Confirms.Guarantee > driver.Written,
	})
}

// stopWire returns what was recorded; nil if that was not wanted.
func (r *run) stopWire() *wire.Report {
	if r.wire != nil {
		return r.wire.Stop()
	}
	if r.wireMissing != "" {
		return &wire.Report{Missing: r.wireMissing}
	}
	return nil
}

// sampled records the completion of a message whose kernel instants are sampled.
func (r *run) sampled(sl *slot, done int64, err error) {
	if err != nil {
		r.wire.Failed()
		return
	}
	r.wire.Confirmed(&wire.Message{
		Stream: sl.stream, Seq: sl.seq, Bytes: len(sl.msg.Payload), Due: sl.due, Late: sl.late, Start: sl.start, End: done,
	})
}

// sampledDelivery records the first delivery of a message, if its kernel instants are sampled.
func (r *run) sampledDelivery(e *ledger.Event) {
	r.wire.Delivered(&wire.Message{
		Stream: e.Stream, Seq: e.Seq, Bytes: int(e.Bytes), Due: e.Due, Late: stamp.Lateness(e.Late, e.Start-e.Due), Start: e.Start, End: e.At,
	})
}
