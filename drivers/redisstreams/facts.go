package redisstreams

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// Facts reads the server's settings as they are now.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	s, err := c.link.State(ctx, "min-replicas-to-write", "stream-node-max-entries")
	if err != nil {
		return driver.Facts{}, fmt.Errorf("redis-streams: %w", err)
	}
	f := s.Facts()
	f.Confirms = confirms(s.Replicas, s.Durable(), c.cfg.WaitReplicas, c.cfg.WaitAOF)
	f.Settings["wait_replicas"] = strconv.Itoa(c.cfg.WaitReplicas)
	f.Settings["wait_aof"] = strconv.FormatBool(c.cfg.WaitAOF)
	f.Settings["claim_after"] = c.cfg.ClaimAfter.String()
	f.Settings["max_len"] = strconv.FormatInt(c.cfg.MaxLen, 10)
	return f, nil
}

// confirms returns what the package comment's table says, of a server with that
// many replicas whose own writes are so durable when it answers.
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

// Backlog implements driver.Backlogger: what the groups have not handed out, and
// what they have and wait to see acknowledged.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	var n uint64
	for _, d := range destinations {
		g := c.group(d, subscription)
		groups, err := c.link.XInfoGroups(ctx, g.key).Result()
		if err != nil {
			if err = redisconn.Cause(err); !redisconn.Answered(err) {
				err = fmt.Errorf("%w: %w", driver.ErrUnreachable, err)
			}
			return 0, fmt.Errorf("redis-streams: backlog of %s: %w", d, err)
		}
		found := false
		for _, info := range groups {
			if info.Name != g.name {
				continue
			}
			if info.Lag < 0 {
				return 0, fmt.Errorf("redis-streams: backlog of %s: the server does not know the group's lag, entries having been deleted: %w", d, driver.ErrUnsupported)
			}
			found = true
			n += uint64(info.Lag + info.Pending)
		}
		if !found {
			return 0, fmt.Errorf("redis-streams: backlog of %s: there is no group %s: %w", d, g.name, driver.ErrUnsupported)
		}
	}
	return n, nil
}
