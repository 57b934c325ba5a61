package redisstreams

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// Facts reads the server's settings as they are now.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	s, err := c.link.State(ctx, "min-replicas-to-write", "stream-node-max-entries")
	if err != nil {
		return driver.Facts{}, err
	}
	f := s.Facts()
	f.Leaders = c.link.Master()
	f.Confirms = confirms(s.Replicas, s.Durable(), c.cfg.WaitReplicas, c.cfg.WaitAOF)
	f.Settings["wait_replicas"] = strconv.Itoa(c.cfg.WaitReplicas)
	f.Settings["wait_aof"] = strconv.FormatBool(c.cfg.WaitAOF)
	f.Settings["claim_after"] = c.cfg.ClaimAfter.String()
	f.Settings["max_len"] = strconv.FormatInt(c.cfg.MaxLen, 10)
	return f, nil
}

// confirms returns what the package comment's table says, of a server with that many
// replicas. Its own writes are so durable when it answers.
func confirms(replicas int, durable driver.Stable, wait int, aof bool) driver.Confirms {
	c := driver.Confirms{Guarantee: driver.Received, Copies: driver.CopiesOne, Stable: durable}
	nodes, have := 1+replicas, 1+wait
	if aof {
		c.Stable = driver.StableFsync
	}
	switch {
	case wait > 0 && have >= nodes:
		c.Copies = driver.CopiesAll
	case wait > 0 && have > nodes/2:
		c.Copies = driver.CopiesQuorum
	}
	if c.Copies > driver.CopiesOne {
		c.Guarantee = driver.Replicated
		if !aof {
			c.Stable = driver.StableNone // a replica says that it has it, not where
		}
	}
	if c.Stable == driver.StableFsync && (nodes == 1 || c.Copies > driver.CopiesOne) {
		c.Guarantee = driver.Persisted
	}
	return c
}

// Foresee implements driver.Foreseer. The first server is the master of the others.
func (c *Config) Foresee(s driver.Servers) driver.Guarantee {
	if c.WaitReplicas >= s.Nodes {
		return driver.Received // no message completes
	}
	aof := c.WaitAOF && c.Server.AppendOnly == "yes"
	return confirms(s.Nodes-1, c.Server.Durable(), c.WaitReplicas, aof).Guarantee
}

// lagMost is how many entries are counted at most.
const lagMost = 100

// lag returns how many entries a group has not handed out. The server does not know
// where the group began in the middle or entries were deleted, and counts those too
// that max-len has cut off unread: up to lagMost they are counted here.
func (c *conn) lag(ctx context.Context, key string, info redis.XInfoGroup) (int64, error) {
	if info.Lag == 0 {
		return 0, nil
	}
	ms, err := c.link.XRangeN(ctx, key, "("+info.LastDeliveredID, "+", lagMost).Result()
	if n := int64(len(ms)); n < lagMost || err != nil {
		return n, err
	}
	return max(info.Lag, lagMost), nil
}

// Backlog implements driver.Backlogger: what the groups have not handed out, and
// what they have and wait to see acknowledged. Above lagMost the former is the server's
// word, or where it has none lagMost; it is 0 only if there is nothing.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	var n uint64
	for _, d := range destinations {
		g := c.group(d, subscription)
		groups, err := c.link.XInfoGroups(ctx, g.key).Result()
		if err != nil {
			return 0, fmt.Errorf("destination %s: %w", d, redisconn.Unreachable(err))
		}
		found := false
		for _, info := range groups {
			if info.Name != g.name {
				continue
			}
			found = true
			lag, err := c.lag(ctx, g.key, info)
			if err != nil {
				return 0, fmt.Errorf("destination %s: %w", d, redisconn.Unreachable(err))
			}
			n += uint64(lag + info.Pending)
		}
		if !found {
			return 0, fmt.Errorf("destination %s: there is no group %s: %w", d, g.name, driver.ErrUnsupported)
		}
	}
	return n, nil
}
