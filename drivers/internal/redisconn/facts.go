package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
)

// unknown stands for a setting that the server does not tell.
const unknown = "unknown"

// fields reads what INFO answers: lines of name:value.
func fields(info string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}

// A State is what a running server says of itself.
type State struct {
	Name       string // redis-server, or another's: valkey
	Version    string
	Cluster    bool // it is a node of a Redis Cluster
	Replicas   int  // connected to it
	AppendOnly bool // it writes an append-only file
	Fsync      string
	NoRewrite  bool // it does not sync while it rewrites that file
	settings   map[string]string
}

// State asks the server. What a user may not see is read as not set, and Settings
// says unknown.
func (l *Link) State(ctx context.Context, settings ...string) (State, error) {
	text, err := l.Info(ctx).Result()
	info := fields(text)
	if c := Cause(err); err != nil && !errors.Is(c, driver.ErrAuth) {
		return State{}, fmt.Errorf("asking %s: %w", l.at.Load().address, unreachable(err))
	}
	s := State{Name: "redis-server", Version: info["redis_version"], Cluster: info["cluster_enabled"] == "1", settings: map[string]string{}}
	if name := info["server_name"]; name != "" && name != "redis" {
		s.Name, s.Version = name, info[name+"_version"]
	}
	if s.Version == "" {
		s.Version = unknown
	}
	s.Replicas, _ = strconv.Atoi(info["connected_slaves"])
	s.settings["connected_slaves"] = strconv.Itoa(s.Replicas)
	for _, name := range append([]string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save", "maxmemory", "maxmemory-policy"}, settings...) {
		m, err := l.ConfigGet(ctx, name).Result()
		if !Answered(err) {
			return State{}, fmt.Errorf("asking %s: %w", l.at.Load().address, unreachable(err))
		}
		value, known := m[name]
		if !known {
			value = unknown
		}
		s.settings[name] = value
	}
	s.AppendOnly = s.settings["appendonly"] == "yes"
	s.Fsync = s.settings["appendfsync"]
	s.NoRewrite = s.settings["no-appendfsync-on-rewrite"] != "no"
	return s, nil
}

// Durable reports where a write is when the server answers it: with an append-only
// file, which is written to before the answers go out. With appendfsync everysec
// that write may be put off for 2 s while a sync is under way.
// (https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/)
func (s State) Durable() driver.Stable {
	switch {
	case !s.AppendOnly:
		return driver.StableNone
	case s.Fsync == "always" && !s.NoRewrite:
		return driver.StableFsync
	case s.Fsync == "always", s.Fsync == "no":
		return driver.StableOS
	}
	return driver.StableNone
}

// Facts returns the state as facts, without what a confirmation means.
func (s State) Facts() driver.Facts {
	f := driver.Facts{Name: s.Name, Version: s.Version, Nodes: 1 + s.Replicas, Settings: map[string]string{}}
	for name, value := range s.settings {
		f.Settings[name] = value
	}
	return f
}

// AtLeast reports whether a version as servers write it is not before major.minor.
// One that cannot be read is.
func AtLeast(version string, major, minor int) bool {
	a, rest, _ := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, err := strconv.Atoi(a)
	if err != nil {
		return true
	}
	y, _ := strconv.Atoi(b)
	return x > major || x == major && y >= minor
}

// Key returns the key or channel of a destination of a run: weir's own, or where
// the run's destinations exist already the name itself.
func Key(run driver.Run, destination string) string {
	if run.Existing {
		return destination
	}
	return "weir:" + run.ID + ":" + destination
}

// CheckDestination refuses what no Redis has: partitions, replicas of one
// destination; names that are empty.
func CheckDestination(d driver.Destination) error {
	switch {
	case d.Name == "":
		return fmt.Errorf("destination without a name: %w", driver.ErrUnsupported)
	case d.Partitions > 1:
		return fmt.Errorf("destination %s: %d partitions: Redis has none: %w", d.Name, d.Partitions, driver.ErrUnsupported)
	case d.Replicas > 1:
		return fmt.Errorf("destination %s: %d replicas: a Redis server replicates all it has, to as many as follow it: %w", d.Name, d.Replicas, driver.ErrUnsupported)
	}
	return nil
}
