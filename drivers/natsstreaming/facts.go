package natsstreaming

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/settings"
)

// Facts starts a session, and asks the monitoring addresses. Without these, it can guarantee only
// that a server has received a message.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f, err := c.link.Base(ctx)
	if err != nil {
		return f, err
	}
	if err := c.ask(ctx, askLimit, nil); err != nil {
		return f, words.Unreachable(err)
	}
	below := "nats-server " + f.Version
	f.Name, f.Version = "nats-streaming-server", "unknown ("+below+")"
	f.Confirms = page.Confirmations.Of(nil)
	f.Settings["cluster_id"], f.Settings["nats_version"] = c.cfg.ClusterID, below
	f.Settings["ack_wait"] = c.cfg.AckWait.String()
	sync := c.cfg.Sync + " (option sync)"
	f.Settings["file_sync"], f.Settings["cluster_sync"] = sync, sync
	nodes := c.monitors.survey(ctx)
	if len(nodes) == 0 {
		f.Settings["store"] = "unknown (option monitor)"
		return f, nil
	}
	f.Version, f.Nodes = nodes[0].Server.Version, len(nodes)
	set := settings.Values{}
	clustered, at := false, c.cfg.HostPorts()
	for _, n := range nodes {
		l := n.Store.Limits
		set.Add("store", n.Store.Type)
		set.Add("state", n.Server.State)
		set.Add("max_msgs", strconv.Itoa(l.MaxMsgs))
		set.Add("max_bytes", driver.FormatSize(l.MaxBytes))
		set.Add("max_age", l.MaxAge.String())
		set.Add("max_inactivity", l.MaxInactivity.String())
		clustered = clustered || n.clustered()
		// One group elects the leader for all channels. Both lists have the servers in the same
		// order.
		if i := slices.Index(c.monitors.address, n.address); n.serves() && i >= 0 && len(at) == len(c.monitors.address) {
			f.Leaders = append(f.Leaders, at[i])
		}
	}
	if !clustered {
		delete(f.Settings, "cluster_sync")
	}
	set.Into(f.Settings)
	f.Confirms = driver.Confirms{}
	for name := range c.channels.Range {
		f.Confirms = f.Confirms.Weaker(c.cfg.confirms(c.monitors.holders(ctx, nodes, name.(string))))
	}
	if f.Confirms == (driver.Confirms{}) {
		f.Confirms = c.cfg.confirms(nodes[:1]) // the minimum for a destination
	}
	return f, nil
}

// confirms returns what a confirmation means for a channel on those servers. If several servers of
// a cluster have the channel, they are its members: the leader answers when a quorum, at least two,
// has the message.
func (c *Config) confirms(holders []node) driver.Confirms {
	members, files := 0, 0
	for _, n := range holders {
		if n.clustered() {
			members++
		}
		if strings.ToLower(strings.TrimPrefix(n.Store.Type, storeRaft)) == storeFile {
			files++
		}
	}
	k := c.Known(driver.Servers{})
	k["replication"] = strconv.Itoa(max(1, members))
	if k["server.store"] = ""; files > 0 && files == len(holders) {
		k["server.store"] = storeFile
	}
	return page.Confirmations.Of(k)
}

// Known implements driver.GuaranteePredictor. No endpoint reports whether servers sync, so the
// option sync states it: in a cluster, only cluster_sync matters. Every server of a cluster has
// every channel.
func (c *Config) Known(s driver.Servers) driver.Known {
	k := driver.Known{"server.file-sync": c.Sync, "server.cluster-sync": c.Sync}
	if s.Nodes > 0 {
		k["server.store"], k["replication"] = c.Server.Store, strconv.Itoa(s.Nodes)
	}
	if s.Nodes > 1 {
		k["server.store"] = storeFile // the recipe's only store for a cluster
	}
	return k
}

// Backlog implements driver.Backlogger: messages not sent to the groups, plus those sent and not
// acknowledged. Without a monitoring address, see heldHere.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	if len(c.cfg.Monitor) == 0 {
		return c.heldHere(ctx, subscription)
	}
	server, err := c.monitors.serving(ctx)
	if err != nil {
		return 0, err
	}
	return each.Sum(destinations, func(d string) (uint64, error) { return c.backlog(ctx, server, subscription, d) })
}

// heldHere is Backlog without a monitoring address, when a group's backlog is otherwise unknown. It
// makes the streaming server start a session, and the server answer a PING after everything it has
// sent to the consumers. Only what their clients hold after that is known; messages that the server
// holds for a departed consumer without an acknowledgement are not.
func (c *conn) heldHere(ctx context.Context, subscription string) (uint64, error) {
	var err error
	// Not with ctx, whose end would close the control connection.
	if !gate.Within(ctx, func() { err = c.with(context.WithoutCancel(ctx), nil) }, nil) {
		return 0, words.Unreachable(ctx.Err())
	}
	if err != nil {
		return 0, words.Unreachable(err)
	}
	return c.ends.Backlog(ctx, subscription)
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
		sent = max(sent, ch.First-1) // earlier messages were dropped by the channel's limits
	}
	return ch.Last - min(sent, ch.Last) + pending, nil
}
