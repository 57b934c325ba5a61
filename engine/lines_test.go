package engine

import (
	"testing"
	"unsafe"

	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
)

// What producers write for each message lies in different cache lines, or two of them would be slower than
// one.
func TestProducersShareNoCacheLine(t *testing.T) {
	const line = 64
	cfg := onNoop(t, pace.Calibration{})
	cfg.Plan.Producers, cfg.InFlight, cfg.Mode = 8, 10, Produce
	sh := must.Get(newShape(cfg))(t)
	r := &run{shape: sh}
	r.recorder = measure.NewRecorder(r.recorderConfig())
	r.ledger = ledger.New(ledger.Config{Streams: r.plan.Streams()})
	r.bodies = newBodies(cfg.Payload, cfg.Plan.Seed, r.sizes)
	owners, pool := make(map[uintptr]int), newChunkPool(cfg.Plan.Producers)
	for i := range cfg.Plan.Producers {
		s := newSender(r, i, pool)
		r.senders = append(r.senders, s) // keeps it, or the next would get its memory
		for what, at := range map[string]unsafe.Pointer{
			"the sequence":     unsafe.Pointer(&s.only.next),
			"the free list":    unsafe.Pointer(&s.free.head),
			"the taken slots":  unsafe.Pointer(unsafe.SliceData(s.taken)),
			"the first slot":   unsafe.Pointer(&s.slots[0].done),
			"the batches":      unsafe.Pointer(&s.batches),
			"the wake-up flag": unsafe.Pointer(&s.parked),
		} {
			if other, ok := owners[uintptr(at)/line]; ok && other != i {
				t.Errorf("%s of producer %d shares a cache line with producer %d", what, i, other)
			}
			owners[uintptr(at)/line] = i
		}
	}
}
