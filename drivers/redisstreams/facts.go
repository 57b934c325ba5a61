package redisstreams

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// Facts reads the server's current settings.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	links, err := c.servers(ctx)
	if err != nil {
		return driver.Facts{}, redisconn.Unreachable(err)
	}
	var f driver.Facts
	for _, link := range links {
		s, err := link.State(ctx, "min-replicas-to-write", "stream-node-max-entries")
		if err != nil {
			return driver.Facts{}, err
		}
		one := s.Facts()
		one.Confirms = page.Confirmations.Of(c.cfg.known(s.Replicas, s.Settings["appendonly"], s.AppendFsync()))
		f = both(f, one)
	}
	f.Leaders = c.leaders()
	if c.cfg.Cluster {
		f.Settings["masters"] = strconv.Itoa(len(links))
	}
	f.Settings["wait_replicas"] = strconv.Itoa(c.cfg.WaitReplicas)
	f.Settings["wait_aof"] = strconv.FormatBool(c.cfg.WaitAOF)
	f.Settings["claim_after"] = c.cfg.ClaimAfter.String()
	f.Settings["max_len"] = strconv.FormatInt(c.cfg.MaxLen, 10)
	if c.cfg.MaxLen > 0 {
		f.Discards = []string{fmt.Sprintf("streams are cut to about %d entries, read or not (max-len)", c.cfg.MaxLen)}
		f.Discarded = c.trimmed(ctx)
	}
	return f, nil
}

// trimmed returns how many entries were trimmed from the streams that this Conn declared. A server
// before 7.0 does not count added entries.
func (c *conn) trimmed(ctx context.Context) []driver.Discarded {
	d := driver.Discarded{Counter: "entries-added less length of XINFO STREAM, read or not"}
	for _, keys := range c.declared.All() {
		for _, key := range keys {
			link, err := c.at(ctx, key)
			if err != nil {
				return nil
			}
			info, err := link.XInfoStream(ctx, key).Result()
			if err != nil || info.EntriesAdded < info.Length {
				return nil
			}
			d.Messages += uint64(info.EntriesAdded - info.Length)
		}
	}
	return []driver.Discarded{d}
}

// both merges the facts of two masters: the servers of both, what both confirm, and both values
// where version or settings differ.
func both(a, b driver.Facts) driver.Facts {
	if a.Nodes == 0 {
		return b
	}
	a.Nodes += b.Nodes
	a.Confirms = a.Confirms.Weaker(b.Confirms)
	a.Version = either(a.Version, b.Version)
	for name, value := range b.Settings {
		a.Settings[name] = either(a.Settings[name], value)
	}
	return a
}

// either returns values, with other added if it is not among them.
func either(values, other string) string {
	if slices.Contains(strings.Split(values, ", "), other) {
		return values
	}
	return values + ", " + other
}

// known returns the settings of a master with that many replicas. A message waits for wait-replicas
// of them.
func (c *Config) known(replicas int, appendOnly, appendFsync string) driver.Known {
	k := driver.KnownOf(c, "wait-aof")
	k["replicas"], k["wait-replicas"] = strconv.Itoa(replicas), driver.Of(1+c.WaitReplicas, 1+replicas)
	k["server.appendonly"], k["server.appendfsync"] = appendOnly, appendFsync
	return k
}

// recipeMasters is the number of masters in the recipe redis-cluster. Each has the same number of
// replicas.
const recipeMasters = 3

// Known implements driver.GuaranteePredictor. The first server is the master of the others; in a
// cluster, the first three are masters.
func (c *Config) Known(s driver.Servers) driver.Known {
	share := s.Nodes // a master and its replicas
	switch {
	case s.Nodes == 0:
		return driver.KnownOf(c, "wait-aof")
	case c.Cluster:
		share = max(1, s.Nodes/recipeMasters)
	}
	return c.known(share-1, c.Server.AppendOnly, c.Server.AppendFsync)
}

// lagMost limits the number of entries counted.
const lagMost = 100

// lag returns how many entries a group has not handed out. The server does not know this if the
// group began in the middle or entries were deleted, and its count includes unread entries trimmed
// by max-len: up to lagMost, entries are counted here.
func (c *conn) lag(ctx context.Context, key string, info redis.XInfoGroup) (int64, error) {
	if info.Lag == 0 {
		return 0, nil
	}
	link, err := c.at(ctx, key)
	if err != nil {
		return 0, err
	}
	ms, err := link.XRangeN(ctx, key, "("+info.LastDeliveredID, "+", lagMost).Result()
	if n := int64(len(ms)); n < lagMost || err != nil {
		return n, err
	}
	return max(info.Lag, lagMost), nil
}

// Backlog implements driver.Backlogger: entries that the groups have not handed out, plus those
// handed out and not acknowledged. Above lagMost, the former is the server's number, or lagMost if
// it has none; it is 0 only if there is nothing.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	return each.Sum(destinations, func(d string) (n uint64, err error) {
		keys, err := c.streams(ctx, d)
		for _, key := range keys {
			if err == nil {
				var more uint64
				more, err = c.left(ctx, c.group(key, subscription))
				n += more
			}
		}
		if err != nil && !driver.IsContract(err) {
			err = redisconn.Unreachable(err)
		}
		return n, err
	})
}

// left is Backlog for one group.
func (c *conn) left(ctx context.Context, g group) (uint64, error) {
	link, err := c.at(ctx, g.key)
	if err != nil {
		return 0, err
	}
	groups, err := link.XInfoGroups(ctx, g.key).Result()
	if err != nil {
		return 0, err
	}
	for _, info := range groups {
		if info.Name == g.name {
			lag, err := c.lag(ctx, g.key, info)
			return uint64(lag + info.Pending), err
		}
	}
	return 0, fmt.Errorf("there is no group %s: %w", g.name, driver.ErrUnsupported)
}
