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

// A Serving says what to start by a recipe.
type Serving struct {
	Self       string            // weir's own binary (os.Executable); its main calls guard.Main
	Definition driver.Definition // of the driver that asks whether the system answers
	Recipe     *Recipe           // one of the definition's
	Nodes      int               // 0 is 1
	Settings   map[string]string // of the recipe; no secrets: they are arguments
	Bind       string            // where servers listen and are reached, see CheckBind; "": 127.0.0.1
	Within     Within            // where processes are started; nil: here
	Places     []Place           // where those of each node are, one for each; nil: all at Bind
	Cuts       bool              // those of each node are in a control group, by which Running.Part cuts nodes off; not with Places
	Disks      bool              // each process has a disk of its own for its data, which can be filled
	Slow       bool              // the data of each process lie on a file system that can be slow
	Cache      string            // as CacheDir has it; the programs are there (Ensure)
	Log        *slog.Logger      // takes what goes wrong; nil: not wanted

	// OnEvent is called with what becomes of a server while the system is up, from
	// any goroutine; it must not block for long. Nil: the log takes it.
	OnEvent func(ServerEvent)
}

// Within calls what starts processes on a thread that hands them something down, such as
// a network namespace. nil calls it where it is.
type Within func(start func() error) error

// A Place is where the servers of a node are.
type Place struct {
	Address string // where they listen and are reached, see CheckBind
	Space   string // path of their network namespace
}

// Apart reports whether the servers are in a network namespace of their own, which clients
// enter by nsenter.
func (r *Recipe) Apart() bool {
	return slices.ContainsFunc(r.Needs, func(n Need) bool { return n.Program == "nsenter" })
}

// Check refuses, with driver.ErrUnsupported, what the recipe does not have: a
// number of nodes, an address to listen at, a setting, a value of one.
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

// CheckBind refuses what is not an address that servers can both listen and be reached
// at: an IPv4 address, and not one that stands for all.
func CheckBind(text string) error {
	ip, err := netip.ParseAddr(text)
	if err != nil || !ip.Is4() || ip.IsUnspecified() || ip.IsMulticast() || ip.String() != text {
		return fmt.Errorf("%q is not an address of a host that clients reach it at (an IPv4 address, such as 10.0.0.5)", text)
	}
	return nil
}

// ParseSettings reads settings as users write them, NAME=VALUE, each once.
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

// CheckSetting refuses, with driver.ErrUnsupported, a setting that the recipe has
// not, or a value that it does not take.
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

// check refuses a value that the setting does not take.
func (s Setting) check(value string) error {
	switch {
	case len(s.Allowed) > 0 && !slices.Contains(s.Allowed, value):
		return fmt.Errorf("%q is not known (%s)", value, strings.Join(s.Allowed, ", "))
	case len(value) > 200 || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune("\"'`\\${}", r) }):
		return errors.New("does not fit (a plain text of one line without quotes, $, braces and backslashes)")
	}
	return nil
}

// A ServerEvent is what becomes of a server of a system that is up.
type ServerEvent struct {
	Process     string `json:"process"` // "server-2"
	Node        int    `json:"node"`
	Pid         int    `json:"pid"`
	Ended       string `json:"ended,omitempty"`    // why it did; "": it was started again, as this process
	ByFault     bool   `json:"by_fault,omitempty"` // an order ended it
	MonotonicNS int64  `json:"monotonic_ns"`       // when, on the host's monotonic clock
}

// String says what happened: "server-2 on node 2 (pid 4711) ended: signal: killed".
func (e ServerEvent) String() string {
	who := fmt.Sprintf("%s on node %d (pid %d)", e.Process, e.Node, e.Pid)
	if e.Ended == "" {
		return who + " was started again"
	}
	return who + " ended: " + e.Ended
}
