package hub

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// farewellSubject is where a hub announces its end.
const farewellSubject = Orders + "all.farewell"

// farewellLimit is the time limit for the announcement.
const farewellLimit = time.Second

// mostFarewells limits the unread announcements.
const mostFarewells = 16

// bidFarewell announces the hub's end to all clients. A client that misses it logs a lost connection, which
// is harmless.
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

// A farewell distinguishes the end of a client's hub from a lost connection.
type farewell struct {
	heard atomic.Pointer[nats.Subscription]
}

// listen subscribes to the announcement.
func (f *farewell) listen(nc *nats.Conn) error {
	sub, err := nc.SubscribeSync(farewellSubject)
	if err != nil {
		return err
	}
	f.heard.Store(sub)
	return sub.SetPendingLimits(mostFarewells, mostFarewells)
}

// said reports whether the hub announced its end since the last call. The announcement precedes the close
// of the connection, so a client that sees the close has it.
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

// lost logs a lost connection, unless it was closed here or the hub ended.
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
