package natsconn

import (
	"context"
	"fmt"
	"time"

	"github.com/weirmq/weir/driver"
)

// baseLimit limits how long Base may take.
const baseLimit = 2 * time.Second

// Base returns what every NATS server tells its clients, after a round trip to it. It fails with
// ErrUnreachable.
func (l *Link) Base(ctx context.Context) (driver.Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, baseLimit)
	defer cancel()
	if err := l.FlushWithContext(ctx); err != nil {
		return driver.Facts{}, fmt.Errorf("asking the server: %w: %w", driver.ErrUnreachable, err)
	}
	f := driver.Facts{
		Name: "nats-server", Version: l.ConnectedServerVersion(), Nodes: 1,
		Settings: map[string]string{"max_payload": driver.FormatSize(l.MaxPayload())},
	}
	if c := l.ConnectedClusterName(); c != "" {
		f.Settings["cluster"] = c
		// Servers that the server announces, including itself.
		f.Nodes = max(1, len(l.DiscoveredServers()), len(l.Servers()))
	}
	return f, nil
}
