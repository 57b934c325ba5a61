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

// A pair is what the active server says about its backup
// (https://artemis.apache.org/components/artemis/documentation/latest/ha.html#replication).
type pair struct {
	policy     string // HAPolicy, as the server words it
	configured bool   // the policy is replication
	nodes      int    // the active server, and the backup that it knows of
	synced     bool   // the backup has all that the server has, and takes each further write
}

// copies returns on how many nodes a durable message is when it is confirmed. A backup answers the
// active server before it has written: it keeps what it was sent in memory until then.
func (p pair) copies() int {
	if p.configured && p.synced && p.nodes > 1 {
		return 2
	}
	return 1
}

// replication is the setting of that name of the page's table.
func (p pair) replication() string {
	if n := p.copies(); n > 1 || !p.configured {
		return strconv.Itoa(n)
	}
	return driver.Of(1, 2)
}

// String says what there is for a replica.
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

// pair asks the server for its policy, for those that it is connected to, and whether
// they are in sync. All three count: what the server says of being in sync has no value
// while there is no backup.
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
