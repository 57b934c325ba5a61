package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
)

// A Serving describes a system to start from a recipe.
type Serving struct {
	Self       string            // path of weir's own binary; its main calls guard.Main
	Definition driver.Definition // driver used to check that the system answers
	Recipe     *Recipe           // one of the definition's recipes
	Nodes      int               // 0 means 1
	Settings   map[string]string // settings of the recipe; no secrets, they are passed as arguments
	Bind       string            // address where servers listen and are reached, see CheckBind; "": 127.0.0.1
	Within     Within            // where to start processes; nil: here
	Places     []Place           // one for each node; nil: all nodes at Bind
	Cuts       bool              // one control group per node, for Running.Part; not with Places
	Disks      bool              // give each process its own disk for data, which can be filled
	Slow       bool              // put each process's data on a slowable file system
	Cache      string            // see CacheDir; the programs must be installed (Ensure)
	Log        *slog.Logger      // receives problems; may be nil

	// OnEvent is called from any goroutine with events of servers while the system is up; it must not
	// block for long. Nil logs the events.
	OnEvent func(ServerEvent)
}

// Within calls start on a thread from which processes inherit something, such as a network namespace.
// A nil Within calls it directly.
type Within func(start func() error) error

// A Place locates the servers of a node.
type Place struct {
	Address string // where they listen and are reached; see CheckBind
	Space   string // path of their network namespace
}

// Apart reports whether the servers run in their own network namespace, which clients enter with
// nsenter.
func (r *Recipe) Apart() bool {
	return slices.ContainsFunc(r.Needs, func(n Need) bool { return n.Program == "nsenter" })
}

// Check returns driver.ErrUnsupported if the recipe does not support the number of nodes, the listen
// address, or a setting or its value.
func (s *Serving) Check() error {
	r := s.Recipe
	if n := max(s.Nodes, 1); !slices.Contains(r.Nodes, n) {
		var have []string
		for _, n := range r.Nodes {
			have = append(have, strconv.Itoa(n))
		}
		able := ""
		if other := Forming(s.Definition, n); other != "" {
			able = "; recipe " + other + " forms one"
		}
		return fmt.Errorf("%w: %s cannot form a system of %d nodes (%s%s)", driver.ErrUnsupported, r.Name, n, strings.Join(have, ", "), able)
	}
	if s.Bind != "" {
		if err := CheckBind(s.Bind); err != nil {
			return fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		if err := r.CheckSetting(name, s.Settings[name]); err != nil {
			return err
		}
	}
	return nil
}

// CheckBind returns an error unless text is an address at which servers can both listen and be
// reached: an IPv4 address other than the unspecified one.
func CheckBind(text string) error {
	ip, err := netip.ParseAddr(text)
	if err != nil || !ip.Is4() || ip.IsUnspecified() || ip.IsMulticast() || ip.String() != text {
		return fmt.Errorf("%q is not an address of a host that clients reach it at (an IPv4 address, such as 10.0.0.5)", text)
	}
	return nil
}

// ParseSettings parses settings in the form NAME=VALUE and rejects duplicates.
func ParseSettings(texts []string) (map[string]string, error) {
	all := map[string]string{}
	for _, s := range texts {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("%q has no = (NAME=VALUE)", s)
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("%s is given twice (once)", name)
		}
		all[name] = value
	}
	return all, nil
}

// CheckSetting returns driver.ErrUnsupported if the recipe does not have the setting or does not allow
// the value.
func (r *Recipe) CheckSetting(name, value string) error {
	setting, ok := r.Settings[name]
	if !ok {
		names := slices.Sorted(maps.Keys(r.Settings))
		if near := driver.Nearest(name, names); near != "" {
			return fmt.Errorf("%w: %s has no setting %q, did you mean %q? (%s)", driver.ErrUnsupported, r.Name, name, near, strings.Join(names, ", "))
		}
		if len(names) == 0 {
			return fmt.Errorf("%w: %s has no setting %q (it has none)", driver.ErrUnsupported, r.Name, name)
		}
		return fmt.Errorf("%w: %s has no setting %q (%s)", driver.ErrUnsupported, r.Name, name, strings.Join(names, ", "))
	}
	if err := setting.check(value); err != nil {
		return fmt.Errorf("%w: setting %s of %s: %w", driver.ErrUnsupported, name, r.Name, err)
	}
	return nil
}

// check returns an error if the setting does not allow the value.
func (s Setting) check(value string) error {
	switch {
	case len(s.Allowed) > 0 && !slices.Contains(s.Allowed, value):
		return fmt.Errorf("%q is not known (%s)", value, strings.Join(s.Allowed, ", "))
	case len(value) > 200 || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune("\"'`\\${}", r) }):
		return errors.New("does not fit (a plain text of one line without quotes, $, braces and backslashes)")
	}
	return nil
}

// A ServerEvent is a change of a server while the system is up.
type ServerEvent struct {
	Process     string `json:"process"` // "server-2"
	Node        int    `json:"node"`
	Pid         int    `json:"pid"`
	Ended       string `json:"ended,omitempty"`    // why it ended; "": it was started again, as this process
	ByFault     bool   `json:"by_fault,omitempty"` // ended by an order
	MonotonicNS int64  `json:"monotonic_ns"`       // time on the host's monotonic clock
}

// String describes the event: "server-2 on node 2 (pid 4711) ended: signal: killed".
func (e ServerEvent) String() string {
	who := fmt.Sprintf("%s on node %d (pid %d)", e.Process, e.Node, e.Pid)
	if e.Ended == "" {
		return who + " was started again"
	}
	return who + " ended: " + e.Ended
}
