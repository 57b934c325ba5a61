package hub

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// farewellSubject is where a hub says that it ends.
const farewellSubject = Orders + "all.farewell"

// farewellLimit bounds how long a hub that ends takes to say so.
const farewellLimit = time.Second

// mostFarewells bounds those that wait to be looked at.
const mostFarewells = 16

// bidFarewell tells all clients that the hub ends. Who does not hear it takes the end for a
// loss, which is no worse than a line in a log.
func (h *Hub) bidFarewell() {
	ctx, cancel := context.WithTimeout(context.Background(), farewellLimit)
	defer cancel()
	nc, err := h.Dial(ctx, "farewell", nil)
	if err != nil {
		return
	}
	defer nc.Close()
	_ = nc.Publish(farewellSubject, nil)
	_ = nc.FlushWithContext(ctx)
}

// A farewell is how a client knows the end of its hub from a loss.
type farewell struct {
	heard atomic.Pointer[nats.Subscription]
}

// listen hears the hub.
func (f *farewell) listen(nc *nats.Conn) error {
	sub, err := nc.SubscribeSync(farewellSubject)
	if err != nil {
		return err
	}
	f.heard.Store(sub)
	return sub.SetPendingLimits(mostFarewells, mostFarewells)
}

// said reports whether the hub said farewell since this was last asked. What it said comes
// before the end of the connection, so it is there when the client sees the end.
func (f *farewell) said() (said bool) {
	sub := f.heard.Load()
	if sub == nil {
		return false
	}
	for {
		if _, err := sub.NextMsg(time.Nanosecond); err != nil {
			return said
		}
		said = true
	}
}

// lost tells the log that a connection was lost, unless it was closed here or the hub ended.
func (f *farewell) lost(log *slog.Logger) nats.ConnErrHandler {
	return func(nc *nats.Conn, err error) {
		switch {
		case err == nil && nc.IsClosed():
		case f.said():
			log.Debug("the fleet's hub has ended", "why", err)
		default:
			log.Warn("connection to the fleet lost", "why", err)
		}
	}
}
