package fleet

import (
	"context"
	"time"

	"github.com/weirmq/weir/internal/fleet/protocol"
)

// tell publishes the decisions to the agents until ctx ends.
func (d *drive) tell(ctx context.Context) {
	tick := time.NewTicker(ordersEvery)
	defer tick.Stop()
	var union []byte
	for n := 0; ; n++ {
		if n%10 == 5 {
			union = d.share(union[:0])
		}
		if n%linesEvery == 0 {
			lines := d.clocks.lines()[:len(d.abouts)] // there may be one more, of the agent with the servers
			d.mu.Lock()
			d.lines = lines
			d.mu.Unlock()
		}
		d.order()
		select {
		case <-tick.C:
		case <-ctx.Done():
			d.order()
			return
		}
	}
}

// share publishes to agents that share subscriptions what all of them received. b is scratch space.
func (d *drive) share(b []byte) []byte {
	b, err := d.c.Deliveries(b)
	if err != nil {
		d.f.o.Log.Warn("the agents do not learn of each other's deliveries", "why", err)
		return b
	}
	if len(b) == 0 || len(b) > int(d.f.nc.MaxPayload()) { // too large: their bounded ledgers then report the difference
		return b
	}
	_ = d.f.nc.Publish(protocol.DeliveriesSubject(d.f.session, d.run.Config.RunID), b) // the next one repeats it
	return b
}

// order publishes the decisions once.
func (d *drive) order() {
	x := d.c.Decided()
	o := protocol.Orders{Run: d.run.Config.RunID, Released: x.Released, Lay: x.Lay, Stop: x.Stop, Why: x.Why, Over: x.Over, Leave: x.Leave, Resume: x.Resume, Cut: x.Cut}
	for i, ns := range x.EpochsNS {
		if o.Epoch == nil {
			o.Epoch = map[string]int64{}
		}
		o.Epoch[d.abouts[i].Name] = ns
	}
	if x.Remover >= 0 {
		o.Remover = d.abouts[x.Remover].Name
	}
	if x.Abort != nil {
		o.Abort = x.Abort.Error()
	}
	d.mu.Lock()
	o.Lines = d.lines
	d.mu.Unlock()
	_ = d.f.nc.Publish(protocol.OrdersPrefix+d.f.session, protocol.Encode(&o)) // the next one repeats it
}
