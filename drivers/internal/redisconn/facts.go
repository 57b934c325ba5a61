package redisconn

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
)

// unknown is shown for a setting that the server does not reveal.
const unknown = "unknown"

// fields parses the answer to INFO: lines of name:value.
func fields(info string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}

// A State is what a running server reports about itself.
type State struct {
	Name     string // redis-server, or another such as valkey
	Version  string
	Cluster  bool              // node of a Redis Cluster
	Replicas int               // connected replicas
	Settings map[string]string // those shown in a result
}

// State queries the server. Values that the user may not see count as not set, and are "unknown" in
// Settings.
func (l *Link) State(ctx context.Context, settings ...string) (State, error) {
	text, err := l.Info(ctx).Result()
	if err != nil && !errors.Is(Cause(err), driver.ErrAuth) {
		return State{}, l.unasked(err)
	}
	info := fields(text)
	s := State{Name: "redis-server", Version: info["redis_version"], Cluster: info["cluster_enabled"] == "1", Settings: map[string]string{}}
	if name := info["server_name"]; name != "" && name != "redis" {
		s.Name, s.Version = name, info[name+"_version"]
	}
	if s.Version == "" {
		s.Version = unknown
	}
	s.Replicas, _ = strconv.Atoi(info["connected_slaves"])
	s.Settings["connected_slaves"] = strconv.Itoa(s.Replicas)
	for _, name := range append([]string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save", "maxmemory", "maxmemory-policy"}, settings...) {
		m, err := l.ConfigGet(ctx, name).Result()
		if !Answered(err) {
			return State{}, l.unasked(err)
		}
		value, known := m[name]
		if !known {
			value = unknown
		}
		s.Settings[name] = value
	}
	return s, nil
}

// AppendOnly reports whether the server writes an append-only file.
func (s State) AppendOnly() bool { return s.Settings["appendonly"] == "yes" }

// AppendFsync returns the effective strength of appendfsync. With an append-only file, the server
// writes to it before it sends answers; with everysec that write may be delayed by 2 s while a sync
// is in progress. With no-appendfsync-on-rewrite, always does not sync while the server rewrites
// the file (https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/).
func (s State) AppendFsync() string {
	fsync := s.Settings["appendfsync"]
	if fsync == "always" && s.Settings["no-appendfsync-on-rewrite"] != "no" {
		return "no"
	}
	return fsync
}

// Facts returns the state as facts, without what a confirmation means. The settings map is shared
// with s.
func (s State) Facts() driver.Facts {
	return driver.Facts{Name: s.Name, Version: s.Version, Nodes: 1 + s.Replicas, Settings: s.Settings}
}

// AtLeast reports whether a server version is at least major.minor. An unparsable version is.
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

// Key returns a destination's key or channel: a name of weir's own or, with existing destinations,
// the destination itself.
func Key(run driver.Run, destination string) string {
	if run.Existing {
		return destination
	}
	return "weir:" + run.ID + ":" + destination
}
