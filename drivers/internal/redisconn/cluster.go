package redisconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
)

// Slots is the number of hash slots of a Redis Cluster.
const Slots = 1 << 14

// A Cluster maps hash slots to the masters of a Redis Cluster. It queries the servers with plain
// clients: a Link goes to one master and follows one slot.
type Cluster struct {
	o     *Options
	run   driver.Run
	given []server // from the options; the first determines user and TLS for all

	mu     sync.Mutex
	ranges []slotRange   // sorted by first slot
	nodes  []server      // to query: the last one that answered, then the map's, then the options'
	links  map[int]*Link // control connections by the slot they follow
}

// A slotRange is a range of adjacent slots of one master.
type slotRange struct {
	first, last int
	at          server
}

// A Seat is a master, identified by its lowest slot. Keys with the tag are in one of its slots.
type Seat struct {
	Slot int
	Tag  string
}

// OpenCluster reads the cluster's slot map from one of the servers, within ctx and 10 s. A server
// that is not in a cluster is ErrUnsupported.
func OpenCluster(ctx context.Context, o *Options, run driver.Run) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	all, err := o.servers()
	if err != nil {
		return nil, err
	}
	c := &Cluster{o: o, run: run, given: all, nodes: all, links: map[int]*Link{}}
	return c, c.Refresh(ctx)
}

// Refresh reads the current slot map, first from the server that answered last.
func (c *Cluster) Refresh(ctx context.Context) error {
	c.mu.Lock()
	all := slices.Clone(c.nodes)
	c.mu.Unlock()
	var errs []error
	for _, at := range all {
		ranges, nodes, err := c.ask(ctx, at)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c.mu.Lock()
		c.ranges, c.nodes = ranges, []server{at}
		for _, n := range slices.Concat(nodes, c.given) {
			if !slices.ContainsFunc(c.nodes, n.is) {
				c.nodes = append(c.nodes, n)
			}
		}
		c.mu.Unlock()
		return nil
	}
	return errors.Join(errs...)
}

func (s server) is(other server) bool { return s.HostPort() == other.HostPort() }

// ask reads the slot map from one server.
func (c *Cluster) ask(ctx context.Context, at server) (ranges []slotRange, nodes []server, err error) {
	ctx, cancel := context.WithTimeout(ctx, findLimit)
	defer cancel()
	l, err := connect(ctx, c.o, at, c.run, "control", nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = l.Close(ctx) }()
	answer, err := l.ClusterSlots(ctx).Result() //nolint:staticcheck // SA1019: Redis 6 has no CLUSTER SHARDS
	if err != nil {
		return nil, nil, l.unasked(err)
	}
	for _, s := range answer {
		for i, n := range s.Nodes {
			node, err := c.server(n.Addr, at)
			if err != nil {
				return nil, nil, err
			}
			nodes = append(nodes, node)
			if i == 0 {
				ranges = append(ranges, slotRange{s.Start, s.End, node})
			}
		}
	}
	if len(ranges) == 0 {
		return nil, nil, fmt.Errorf("%s knows no master of any hash slot: %w", at.HostPort(), driver.ErrBlocked)
	}
	slices.SortFunc(ranges, func(a, b slotRange) int { return cmp.Compare(a.first, b.first) })
	return ranges, nodes, nil
}

// server returns how to connect to a node of the map. A node without a host is on the host that was
// asked.
func (c *Cluster) server(hostPort string, asked server) (s server, err error) {
	s = c.given[0]
	if s.Host, s.Port, err = net.SplitHostPort(hostPort); err != nil {
		return s, fmt.Errorf("the map of the cluster names %q: %w", hostPort, driver.ErrUnsupported)
	}
	if s.Host == "" || s.Host == "?" {
		s.Host = asked.Host
	}
	if s.tls != nil {
		s.tls = s.tls.Clone()
		s.tls.ServerName = s.Host
	}
	return s, nil
}

// of returns the range of a slot.
func (c *Cluster) of(slot int) (slotRange, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.ranges {
		if r.first <= slot && slot <= r.last {
			return r, nil
		}
	}
	return slotRange{}, fmt.Errorf("hash slot %d has no master: %w", slot, driver.ErrBlocked)
}

// Master returns the host:port of a slot's master according to the map, or "".
func (c *Cluster) Master(slot int) string {
	r, err := c.of(slot)
	if err != nil {
		return ""
	}
	return r.at.HostPort()
}

// Seats returns the masters, sorted by lowest slot.
func (c *Cluster) Seats() []Seat {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Seat
	var seen []server
	for _, r := range c.ranges {
		if !slices.ContainsFunc(seen, r.at.is) {
			seen = append(seen, r.at)
			out = append(out, Seat{r.first, tag(r)})
		}
	}
	return out
}

// Link opens a connection, for name, to a slot's master. When it is lost, or the server reports
// that the slot has moved, the next connection goes to the slot's new master.
func (c *Cluster) Link(ctx context.Context, run driver.Run, slot int, name string) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	r, err := c.of(slot)
	if err != nil {
		return nil, err
	}
	return connect(ctx, c.o, r.at, run, name, func(ctx context.Context) (server, error) {
		if err := c.Refresh(ctx); err != nil {
			return server{}, err
		}
		r, err := c.of(slot)
		return r.at, err
	})
}

// Control returns a shared connection to a slot's master, which the Cluster closes.
func (c *Cluster) Control(ctx context.Context, slot int) (*Link, error) {
	r, err := c.of(slot)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	l := c.links[r.first]
	c.mu.Unlock()
	if l != nil {
		if !l.at.Load().is(r.at) {
			l.astray.Store(true) // even a server that became a replica still answers many requests
			l.Kill()
		}
		return l, nil
	}
	if l, err = c.Link(ctx, c.run, r.first, "control"); err != nil {
		return nil, err
	}
	l.AddHook(movedHook{l})
	c.mu.Lock()
	defer c.mu.Unlock()
	if first := c.links[r.first]; first != nil { // another goroutine was faster
		return first, l.Close(ctx)
	}
	c.links[r.first] = l
	return l, nil
}

// Close closes the control connections.
func (c *Cluster) Close(ctx context.Context) error {
	c.mu.Lock()
	links := c.links
	c.links = map[int]*Link{}
	c.mu.Unlock()
	var errs []error
	for _, l := range links {
		errs = append(errs, l.Close(ctx))
	}
	return errors.Join(errs...)
}

// movedHook passes each error that a server answers to CheckMoved.
type movedHook struct{ l *Link }

func (h movedHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h movedHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.l.CheckMoved(err)
		return err
	}
}

func (h movedHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Slot returns a key's hash slot: that of the text between the first { and the next }, or of the
// whole key if there is no such text
// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
func Slot(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16 // CRC-16/XMODEM
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % Slots
}

// tag returns a short text that hashes into one of the slots.
func tag(r slotRange) string {
	for n := 0; ; n++ {
		text := strconv.Itoa(n)
		if slot := Slot(text); r.first <= slot && slot <= r.last {
			return text
		}
	}
}
