package natsstreaming

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/httpapi"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// monitorLimit limits one request to a monitoring address.
const monitorLimit = 2 * time.Second

// errNoChannel is a monitoring address's answer for a missing channel.
var errNoChannel = errors.New("no such channel")

// monitors holds the monitoring addresses
// (https://docs.nats.io/legacy/stan/intro/monitoring/endpoints).
type monitors struct {
	cluster string   // cluster-id
	address []string // such as http://127.0.0.1:8222
	web     *httpapi.Client
}

// newMonitors reads the certificates for https addresses.
func newMonitors(c *Config) (*monitors, error) {
	l, err := natsconn.Monitors.All("monitor", c.Monitor)
	var t *tls.Config
	if err == nil && c.TLS != (driver.TLSOptions{}) {
		t, err = c.TLS.Config()
	}
	m := &monitors{cluster: c.ClusterID, web: httpapi.New("a NATS Streaming server", t, monitorLimit)}
	for _, e := range l {
		m.address = append(m.address, e.String())
	}
	return m, err
}

// any reports whether there are monitoring addresses.
func (m *monitors) any() bool { return len(m.address) > 0 }

// A node is what one server reports about itself.
type node struct {
	address string
	err     error // why it reports nothing
	Server  struct {
		ClusterID string `json:"cluster_id"`
		Version   string `json:"version"`
		State     string `json:"state"` // STANDALONE, CLUSTERED, FT_ACTIVE, FT_STANDBY
		Role      string `json:"role"`  // Leader, Follower, Candidate; empty without a cluster
	}
	Store struct {
		Type   string `json:"type"` // MEMORY, FILE, SQL; with prefix RAFT_ in a cluster
		Limits struct {
			MaxMsgs       int           `json:"max_msgs"`
			MaxBytes      int64         `json:"max_bytes"`
			MaxAge        time.Duration `json:"max_age"`
			MaxInactivity time.Duration `json:"max_inactivity"`
		} `json:"limits"`
	}
}

// Values used by the server (server/server.go, server/ft.go, stores/store.go).
const (
	roleLeader   = "Leader"
	stateStandby = "FT_STANDBY"
	storeFile    = "file"
	storeRaft    = "RAFT_"
)

// clustered reports whether the server is in a Raft cluster.
func (n *node) clustered() bool { return n.Server.Role != "" }

// serves reports whether clients talk to this server: the cluster's leader, or the only active
// server.
func (n *node) serves() bool {
	if n.clustered() {
		return n.Server.Role == roleLeader
	}
	return n.Server.State != stateStandby
}

// A channel is a server's report on a channel and the members of its queue groups.
type channel struct {
	First         uint64 `json:"first_seq"`
	Last          uint64 `json:"last_seq"`
	Subscriptions []struct {
		Queue    string `json:"queue_name"`
		LastSent uint64 `json:"last_sent"`
		Pending  uint64 `json:"pending_count"` // sent and not acknowledged
	} `json:"subscriptions"`
}

// ask asks the server what it is. A server of another cluster, or one that is not NATS Streaming,
// is ErrUnsupported.
func (m *monitors) ask(ctx context.Context, n *node) error {
	err := m.web.Get(ctx, n.address, "/streaming/serverz", nil, &n.Server)
	if err == nil && n.Server.ClusterID != m.cluster {
		return fmt.Errorf("asking %s: it is of the cluster-id %q, not %q: %w", n.address, n.Server.ClusterID, m.cluster, driver.ErrUnsupported)
	}
	if err == nil {
		err = m.web.Get(ctx, n.address, "/streaming/storez", nil, &n.Store)
	}
	if no := (*httpapi.Refusal)(nil); errors.As(err, &no) {
		return fmt.Errorf("what answers is not a NATS Streaming server: %w: %w", driver.ErrUnsupported, err)
	}
	return err
}

// all asks every server concurrently.
func (m *monitors) all(ctx context.Context) []node {
	nodes := make([]node, len(m.address))
	var asking sync.WaitGroup
	for i, a := range m.address {
		nodes[i].address = a
		asking.Go(func() { nodes[i].err = m.ask(ctx, &nodes[i]) })
	}
	asking.Wait()
	return nodes
}

// survey returns the servers that answer.
func (m *monitors) survey(ctx context.Context) []node {
	return slices.DeleteFunc(m.all(ctx), func(n node) bool { return n.err != nil })
}

// check returns an error if something else answers at an address, or nothing at any: a wrong
// address would silently weaken the facts. One of several servers may be down.
func (m *monitors) check(ctx context.Context) error {
	var silent []error
	for _, n := range m.all(ctx) {
		if n.err != nil && !errors.Is(n.err, driver.ErrUnreachable) {
			return fmt.Errorf("option monitor: %w", n.err)
		}
		if n.err != nil {
			silent = append(silent, n.err)
		}
	}
	if len(silent) == 0 || len(silent) < len(m.address) {
		return nil
	}
	return fmt.Errorf("option monitor: %w", errors.Join(silent...))
}

// channel asks one server for a channel, with its subscriptions if requested. A missing one is
// errNoChannel.
func (m *monitors) channel(ctx context.Context, address, name string, subscriptions bool) (c channel, err error) {
	query := url.Values{"channel": {name}}
	if subscriptions {
		query.Set("subs", "1")
	}
	if err = m.web.Get(ctx, address, "/streaming/channelsz", query, &c); httpapi.Missing(err) {
		err = errNoChannel
	}
	return c, err
}

// mustHave returns an error if no server has a channel: using it would create it.
func (m *monitors) mustHave(ctx context.Context, name string) error {
	nodes := m.survey(ctx)
	if len(nodes) == 0 {
		return fmt.Errorf("whether there is such a channel is told at %s, and none answers: %w", strings.Join(m.address, ", "), driver.ErrUnreachable)
	}
	for _, n := range nodes {
		if _, err := m.channel(ctx, n.address, name, false); !errors.Is(err, errNoChannel) {
			return nil
		}
	}
	return fmt.Errorf("there is no such channel on the server: %w", driver.ErrUnsupported)
}

// holders returns the servers that have a channel.
func (m *monitors) holders(ctx context.Context, nodes []node, name string) []node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n node) bool {
		_, err := m.channel(ctx, n.address, name, false)
		return err != nil
	})
}

// serving returns the monitoring address of the server that clients use.
func (m *monitors) serving(ctx context.Context) (string, error) {
	for _, n := range m.survey(ctx) {
		if n.serves() {
			return n.address, nil
		}
	}
	return "", fmt.Errorf("no server at %s leads: %w", strings.Join(m.address, ", "), driver.ErrUnreachable)
}

// awaitSpread waits until every responding node of the cluster has the channel: followers learn of
// it after the leader has answered. A node that is slower than spreadLimit is not an error; it does
// not count as holding a copy.
func (m *monitors) awaitSpread(ctx context.Context, name string) {
	if len(m.address) < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, spreadLimit)
	defer cancel()
	for {
		nodes := m.survey(ctx)
		if len(m.holders(ctx, nodes, name)) == len(nodes) || !retry.Pause(ctx, askPause) {
			return
		}
	}
}
