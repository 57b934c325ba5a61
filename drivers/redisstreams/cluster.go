package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// What differs where the streams are spread over the masters of a Redis Cluster. A
// destination is then a directory, a text of its streams' keys, one a line, and a stream a
// partition. The streams of one master have one hash tag, so that one XREADGROUP reads
// them: of many keys it takes those of one slot. The map of the cluster when a destination
// is made says which tags these are.

// Narrow implements driver.Narrowed: partitions take a cluster, and order is then theirs.
func (c *Config) Narrow(can driver.Capabilities) driver.Capabilities {
	can.Partitions = can.Partitions && c.Cluster
	if c.Cluster {
		can.Ordering = min(can.Ordering, driver.PerPartition)
	}
	return can
}

// at returns the shared connection to the server of a key.
func (c *conn) at(ctx context.Context, key string) (*redisconn.Link, error) {
	if c.cluster == nil {
		return c.link, nil
	}
	return c.cluster.Control(ctx, redisconn.Slot(key))
}

// another makes another connection to the server of a slot.
func (c *conn) another(ctx context.Context, run driver.Run, slot int, name string) (*redisconn.Link, error) {
	if c.cluster == nil {
		return c.link.Another(ctx, run, name)
	}
	return c.cluster.Link(ctx, run, slot, name)
}

// slot returns what keys must share for one connection to serve them: 0 of a single
// server.
func (c *conn) slot(key string) int {
	if c.cluster == nil {
		return 0
	}
	return redisconn.Slot(key)
}

// directed reports whether destinations are directories.
func (c *conn) directed() bool { return c.cluster != nil && !c.run.Existing }

// streams returns the keys of a destination's streams, by the number of the partition.
func (c *conn) streams(ctx context.Context, destination string) ([]string, error) {
	key := redisconn.Key(c.run, destination)
	if !c.directed() {
		return []string{key}, nil
	}
	link, err := c.at(ctx, key)
	if err != nil {
		return nil, err
	}
	text, err := link.Get(ctx, key).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, fmt.Errorf("there is no such destination: %w", driver.ErrUnsupported)
	case err != nil:
		return nil, err
	}
	return strings.Split(text, "\n"), nil
}

// direct writes the directory of a destination, where there is none, and returns the keys
// of its streams.
func (c *conn) direct(ctx context.Context, d driver.Destination) ([]string, error) {
	key := redisconn.Key(c.run, d.Name)
	if !c.directed() {
		return []string{key}, nil
	}
	seats := c.cluster.Seats()
	first := int(crc32.ChecksumIEEE([]byte(d.Name)) % uint32(len(seats))) // many destinations of one partition are spread, too
	keys := make([]string, max(1, d.Partitions))
	for i := range keys {
		keys[i] = key + ":" + strconv.Itoa(i) + ":{" + seats[(first+i)%len(seats)].Tag + "}"
	}
	link, err := c.at(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := link.SetNX(ctx, key, strings.Join(keys, "\n"), 0).Err(); err != nil {
		return nil, err
	}
	have, err := c.streams(ctx, d.Name)
	if err == nil && len(have) != len(keys) {
		err = fmt.Errorf("it exists with %d partitions: %w", len(have), driver.ErrUnsupported)
	}
	return have, err
}

// partition returns which of n partitions a key is sent to, by every producer.
func partition(key []byte, n int) int {
	return int(crc32.ChecksumIEEE(key) % uint32(n))
}

// leaders returns the masters of the declared destinations, one for each partition.
func (c *conn) leaders() []string {
	if c.cluster == nil {
		return c.link.Master()
	}
	var out []string
	for _, keys := range c.declared.All() {
		for _, key := range keys {
			if m := c.cluster.Master(redisconn.Slot(key)); m != "" {
				out = append(out, m)
			}
		}
	}
	slices.Sort(out)
	return out
}

// servers returns a connection to each master, as the map is now.
func (c *conn) servers(ctx context.Context) ([]*redisconn.Link, error) {
	if c.cluster == nil {
		return []*redisconn.Link{c.link}, nil
	}
	if err := c.cluster.Refresh(ctx); err != nil {
		return nil, err
	}
	var out []*redisconn.Link
	for _, s := range c.cluster.Seats() {
		link, err := c.cluster.Control(ctx, s.Slot)
		if err != nil {
			return nil, err
		}
		out = append(out, link)
	}
	return out, nil
}
