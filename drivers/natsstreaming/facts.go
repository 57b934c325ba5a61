package natsstreaming

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
)

// untold is what no endpoint of the server tells.
const untold = "unknown (no endpoint tells; assumed off)"

// Facts has a session made, and asks the monitoring addresses. Without these it
// can say only that a server has received a message.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f, err := c.link.Base(ctx)
	if err != nil {
		return f, fmt.Errorf("nats-streaming: %w", err)
	}
	if err := c.ask(ctx, func(*session) error { return nil }); err != nil {
		return f, fmt.Errorf("nats-streaming: %w: %w", driver.ErrUnreachable, cause(err))
	}
	below := "nats-server " + f.Version
	f.Name, f.Version = "nats-streaming-server", "unknown ("+below+")"
	f.Confirms = driver.Confirms{Guarantee: driver.Received}
	f.Settings["cluster_id"], f.Settings["nats_version"] = c.cfg.ClusterID, below
	f.Settings["ack_wait"] = c.cfg.AckWait.String()
	f.Settings["file_sync"], f.Settings["cluster_sync"] = untold, untold
	nodes := c.monitors.survey(ctx)
	if len(nodes) == 0 {
		f.Settings["store"] = "unknown (option monitor)"
		return f, nil
	}
	f.Version, f.Nodes = nodes[0].Server.Version, len(nodes)
	set := settings{}
	clustered := false
	for _, n := range nodes {
		l := n.Store.Limits
		set.add("store", n.Store.Type)
		set.add("state", n.Server.State)
		set.add("max_msgs", strconv.Itoa(l.MaxMsgs))
		set.add("max_bytes", driver.FormatSize(l.MaxBytes))
		set.add("max_age", l.MaxAge.String())
		set.add("max_inactivity", l.MaxInactivity.String())
		clustered = clustered || n.clustered()
	}
	if !clustered {
		delete(f.Settings, "cluster_sync")
	}
	for k, v := range set {
		f.Settings[k] = strings.Join(v, ", ")
	}
	c.mu.Lock()
	names := slices.Sorted(maps.Keys(c.channels))
	c.mu.Unlock()
	if len(names) == 0 {
		f.Confirms = confirms(nodes[:1]) // what a destination would have at least
	}
	for i, name := range names {
		this := confirms(c.monitors.holders(ctx, nodes, name))
		if i == 0 {
			f.Confirms = this
		}
		f.Confirms = driver.Confirms{
			Guarantee: min(f.Confirms.Guarantee, this.Guarantee), Copies: min(f.Confirms.Copies, this.Copies), Stable: min(f.Confirms.Stable, this.Stable),
		}
	}
	return f, nil
}

// confirms returns what the package comment's table says of a channel on those
// servers. Several of a cluster that have it are members of it: its leader answers
// when a quorum has the message, which is two of them at least.
func confirms(holders []node) driver.Confirms {
	c := driver.Confirms{Guarantee: driver.Received}
	members, files := 0, 0
	for _, n := range holders {
		if n.clustered() {
			members++
		}
		if strings.TrimPrefix(n.Store.Type, storeRaft) == storeFile {
			files++
		}
	}
	if members > 1 {
		c.Guarantee, c.Copies = driver.Replicated, driver.CopiesQuorum
	}
	if files > 0 && files == len(holders) {
		c.Stable = driver.StableOS
	}
	return c
}

// Backlog implements driver.Backlogger: what the groups have not been sent, and
// what they have been sent and not acknowledged. Where no monitoring address is
// known, see heldHere.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	if len(c.cfg.Monitor) == 0 {
		return c.heldHere(ctx, subscription)
	}
	server, err := c.monitors.serving(ctx)
	if err != nil {
		return 0, fmt.Errorf("nats-streaming: backlog: %w", err)
	}
	var n uint64
	for _, d := range destinations {
		one, err := c.backlog(ctx, server, subscription, d)
		if err != nil {
			return 0, fmt.Errorf("nats-streaming: backlog of %s: %w", d, err)
		}
		n += one
	}
	return n, nil
}

func (c *conn) backlog(ctx context.Context, server, subscription, destination string) (uint64, error) {
	name, err := c.channel(ctx, destination)
	if err != nil {
		return 0, err
	}
	g, err := c.used(subscription, name)
	if err != nil {
		return 0, err
	}
	ch, err := c.monitors.channel(ctx, server, name, true)
	if err != nil {
		return 0, err
	}
	var sent, pending uint64
	found := false
	for _, s := range ch.Subscriptions {
		if s.Queue == g.name() {
			found, sent, pending = true, max(sent, s.LastSent), pending+s.Pending
		}
	}
	if !found {
		return 0, fmt.Errorf("the server has no queue group %s: %w", g.name(), driver.ErrUnsupported)
	}
	if ch.First > 0 {
		sent = max(sent, ch.First-1) // the channel's limits have dropped what was before
	}
	return ch.Last - min(sent, ch.Last) + pending, nil
}

// serving returns the monitoring address of the server that clients talk to.
func (m *monitors) serving(ctx context.Context) (string, error) {
	for _, n := range m.survey(ctx) {
		if n.serves() {
			return n.address, nil
		}
	}
	return "", fmt.Errorf("no server at %s leads: %w", strings.Join(m.address, ", "), driver.ErrUnreachable)
}

// settings gathers the different values of settings that several servers have.
type settings map[string][]string

func (s settings) add(name, value string) {
	if !slices.Contains(s[name], value) {
		s[name] = append(s[name], value)
	}
}
