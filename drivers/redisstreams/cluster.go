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

// Support for streams spread over the masters of a Redis Cluster. A destination is then a
// directory, a text with the keys of its streams, one per line, and a stream is a partition. The
// streams on one master share a hash tag, so that one XREADGROUP can read them: it accepts only
// keys of one slot. The tags come from the cluster's slot map when a destination is created.

// Narrow implements driver.Narrowed: partitions require a cluster, and messages are then ordered
// per partition.
func (c *Config) Narrow(can driver.Capabilities) driver.Capabilities {
	can.Partitions = can.Partitions && c.Cluster
	if c.Cluster {
		can.Ordering = min(can.Ordering, driver.PerPartition)
	}
	return can
}

// at returns the shared connection to a key's server.
func (c *conn) at(ctx context.Context, key string) (*redisconn.Link, error) {
	if c.cluster == nil {
		return c.link, nil
	}
	return c.cluster.Control(ctx, redisconn.Slot(key))
}

// another opens another connection to a slot's server.
func (c *conn) another(ctx context.Context, run driver.Run, slot int, name string) (*redisconn.Link, error) {
	if c.cluster == nil {
		return c.link.Another(ctx, run, name)
	}
	return c.cluster.Link(ctx, run, slot, name)
}

// slot returns what keys must share to use the same connection: always 0 for a single server.
func (c *conn) slot(key string) int {
	if c.cluster == nil {
		return 0
	}
	return redisconn.Slot(key)
}

// directed reports whether destinations are directories.
func (c *conn) directed() bool { return c.cluster != nil && !c.run.Existing }

// streams returns the keys of a destination's streams, by partition number.
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

// direct creates a destination's directory if missing, and returns the keys of its streams.
func (c *conn) direct(ctx context.Context, d driver.Destination) ([]string, error) {
	key := redisconn.Key(c.run, d.Name)
	if !c.directed() {
		return []string{key}, nil
	}
	seats := c.cluster.Seats()
	first := int(crc32.ChecksumIEEE([]byte(d.Name)) % uint32(len(seats))) // also spreads single-partition ones
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

// partition maps a key to one of n partitions, identically in every producer.
func partition(key []byte, n int) int {
	return int(crc32.ChecksumIEEE(key) % uint32(n))
}

// leaders returns the masters of the declared destinations, one per partition.
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

// servers returns a connection to each master in the current slot map.
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
