package series

import (
	"cmp"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/wire"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Wire says whether a run records kernel instants.
type Wire uint8

// The values.
const (
	WireOff  Wire = iota
	WireAuto      // where the host allows it
	WireOn        // the same, but a note says where it does not
)

// CheckWire returns wire.ErrMissing, with what is missing, if this host does not allow it.
func CheckWire() error { return wire.Check() }

// wireOf returns where the time of messages went; nil if it was not wanted.
func (m *measurement) wireOf(raw *engine.Raw, r *result.Result) *result.Wire {
	w, latency := raw.Wire, &r.Latency
	if w == nil {
		return nil
	}
	x := &result.Wire{Missing: w.Missing, Windows: w.Windows, Segments: w.Segments, LostSegments: w.Lost, Connections: w.Conns, Encrypted: w.Hidden, SameHost: w.Beside > 0 || r.Servers != nil}
	if w.UsedNS > 0 {
		x.CostShare = new(float64(w.CostNS) / float64(w.UsedNS))
	}
	usual, beside := m.record.oversleep(raw), (*measure.Counts)(nil)
	if x.SameHost {
		beside = m.record.slices.Woken()
	}
	x.Send = judge.Parts(&w.Send, cmp.Or(latency.Send.Response, latency.Send.Service), beside, usual)
	x.E2E = judge.Parts(&w.E2E, cmp.Or(latency.E2E.Response, latency.E2E.Service), beside, usual)
	if x.Missing == "" && x.Send == nil && x.E2E == nil {
		x.Missing = unseen(w)
	}
	if x.Missing != "" && m.wire == WireOn {
		m.observer.Note("--wire: %s", x.Missing)
	}
	if x.Send != nil || x.E2E != nil { // an agent's host may not allow it
		x.Missing = ""
	}
	return x
}

// unseen says why nothing is known though segments were recorded.
func unseen(w *wire.Report) string {
	code := "wire.unreadable"
	if w.Hidden {
		code = "wire.encrypted"
	}
	switch {
	case w.Conns == 0:
		code = "wire.no_connection"
	case w.Segments == 0:
		code = "wire.silent"
	case w.Send.Sampled()+w.E2E.Sampled() == 0:
		code = "wire.none"
	case w.Send.Late+w.E2E.Late > w.Send.Unseen+w.E2E.Unseen:
		code = "wire.too_long"
	}
	return finding.New(code).String()
}
