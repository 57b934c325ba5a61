package artemis

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/amqp1conn"
)

// A pair is what the active server reports about its backup
// (https://artemis.apache.org/components/artemis/documentation/latest/ha.html#replication).
type pair struct {
	policy     string // HAPolicy, in the server's words
	configured bool   // the policy is replication
	nodes      int    // the active server and its known backup
	synced     bool   // the backup has all data, and receives each further write
}

// copies returns the number of nodes that have a durable message when it is confirmed. A backup
// answers the active server before it writes, and until then has the message only in memory.
func (p pair) copies() int {
	if p.configured && p.synced && p.nodes > 1 {
		return 2
	}
	return 1
}

// replication is the setting of that name in the page's table.
func (p pair) replication() string {
	if n := p.copies(); n > 1 || !p.configured {
		return strconv.Itoa(n)
	}
	return driver.Of(1, 2)
}

// String describes the replication state.
func (p pair) String() string {
	switch {
	case !p.configured:
		return "no replication (ha-policy)"
	case p.nodes == 1:
		return "no backup now"
	case !p.synced:
		return "a backup that is not in sync yet"
	}
	return "one backup"
}

// pair asks the server for its policy, its connected nodes, and whether they are in sync. It needs
// all three: the sync state means nothing without a backup.
func (s *system) pair(ctx context.Context, a *amqp1conn.Admin) (p pair, err error) {
	p.nodes = 1
	if err = s.ask(ctx, a, broker, attribute, "HAPolicy", &p.policy); err != nil {
		return p, err
	}
	if p.configured = strings.HasPrefix(p.policy, "Replication"); !p.configured {
		return p, nil
	}
	var text string
	if err = s.ask(ctx, a, broker, operation, "listNetworkTopology", &text); err != nil {
		return p, err
	}
	var members []struct{ Primary, Backup string }
	if err = json.Unmarshal([]byte(text), &members); err != nil {
		return p, fmt.Errorf("listNetworkTopology of broker: %w: %s", driver.ErrUnsupported, err.Error())
	}
	if len(members) == 1 && members[0].Backup != "" {
		p.nodes = 2
	}
	return p, s.ask(ctx, a, broker, attribute, "replicaSync", &p.synced)
}
