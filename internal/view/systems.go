package view

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/view/layout"
)

// A SystemList is the output of weir broker status --json.
type SystemList struct {
	Schema  string   `json:"schema"`
	Weir    string   `json:"weir"`
	Cache   string   `json:"cache"`
	Systems []System `json:"systems"`
}

// A System is one system of a SystemList.
type System struct {
	DriverRecipe
	Drivers   []string       `json:"drivers"`
	Settings  []DriverOption `json:"settings"`
	Installed string         `json:"installed,omitempty"` // folder, or "host"; absent: not installed
	Lacks     string         `json:"lacks,omitempty"`     // missing on the host to install or start it
	Kept      *broker.Kept   `json:"kept,omitempty"`      // the system that is, or was, running
	Answers   *bool          `json:"answers,omitempty"`   // if it is running: whether its driver reached it
	Server    *driver.Facts  `json:"-"`
	Why       string         `json:"why,omitempty"` // why it does not answer
}

// state describes a system's state in a few words.
func (s *System) state() string {
	switch k := s.Kept; {
	case s.Source == "docker":
		return "docker only"
	case k == nil && s.Lacks != "":
		return "cannot be started here"
	case k == nil && s.Installed == "":
		return "not installed"
	case k == nil:
		return "installed"
	case k.Ended != "":
		return "ended by itself"
	case !k.Up:
		return "gone: its supervisor was killed"
	case s.Answers != nil && !*s.Answers:
		return "up, does not answer"
	default:
		return "up: " + strings.Join(k.Address, ", ")
	}
}

// Show writes the list to a page.
func (l *SystemList) Show(p *layout.Page) {
	t := layout.Listing("system", "", "from", "nodes", "state")
	for i := range l.Systems {
		s := &l.Systems[i]
		t.Row(s.Name, s.Title+" "+s.Version, s.Source, numbers(s.Nodes), s.state())
	}
	p.Table(t)
	p.Gap()
	p.Say("weir broker status NAME shows all about one. Installs are in " + l.Cache)
}

func numbers(list []int) string {
	var out []string
	for _, n := range list {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ", ")
}

// Show writes everything about one system to a page.
func (s *System) Show(p *layout.Page) {
	p.Line(layout.Strong.Of(s.String()))
	t := layout.Listing("", "")
	t.Row("state", s.state())
	add := func(name, value string) {
		if value != "" {
			t.Row(name, value)
		}
	}
	add("lacks", s.Lacks)
	add("installed", s.Installed)
	add("drivers", strings.Join(s.Drivers, ", "))
	add("images", strings.Join(s.Images, ", "))
	if k := s.Kept; k != nil {
		add("why", s.Why)
		add("ended", k.Ended)
		if s.Server != nil {
			add("server", s.Server.Name+" "+s.Server.Version)
		}
		add("address", strings.Join(k.Address, ", "))
		for _, proc := range k.Processes {
			add(proc.Name, "processes "+numbers(proc.Pids))
		}
		add("folder", k.Dir)
		add("since", k.Since.Format(time.RFC3339))
		add("keeper", strconv.Itoa(k.Keeper)+", log "+filepath.Clean(k.Log))
	}
	p.Table(t)
	ShowOptions(p, "Settings (--set NAME=VALUE; of a run --option server.NAME=VALUE)", s.Settings)
}

// ShowLogs writes the last lines of each log of a running system.
func ShowLogs(p *layout.Page, k *broker.Kept, lines int) {
	for _, proc := range k.Processes {
		for _, name := range proc.Logs {
			showLog(p, proc.Name+": "+name, name, lines)
		}
	}
	showLog(p, "weir: "+k.Log, k.Log, lines)
}

func showLog(p *layout.Page, title, name string, lines int) {
	p.Verbatim(title)
	text, err := broker.LogEnd(name, lines)
	if err != nil {
		text = []string{strings.TrimPrefix(err.Error(), "open ")}
	}
	p.Inset(2).Verbatim(text...)
}

// MeasuringCommand is the command that measures a running system.
func MeasuringCommand(name string, address []string, options map[string][]string, whole bool) string {
	line := "weir run --driver " + name
	for _, a := range address {
		line += " --address " + a
	}
	if whole {
		for _, o := range slices.Sorted(maps.Keys(options)) {
			line += " --option " + o + "=" + strings.Join(options[o], ",")
		}
	}
	return line
}
