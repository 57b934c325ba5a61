package scenario

import (
	"fmt"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/deal"
)

// maxSelectors is how many each list of a placement may hold.
const maxSelectors = 1024

var (
	placements = []string{"paired", "split"}
	sides      = []string{"producers", "consumers"} // of a placement by lists
)

const (
	allowedPlacement = "paired, split, or lists such as {producers: [a, zone=b], consumers: [c]}"
	allowedAgents    = "a list of agents, by name or by label, such as [a, zone=b]"
)

// placement reads where producers and consumers are.
func (d *decoder) placement() deal.Placement {
	const path = "placement"
	var p deal.Placement
	n := d.find(path)
	switch {
	case n == nil:
	case n.shape == text:
		switch s := strings.TrimSpace(n.text); s {
		case "paired":
			p.Kind = deal.Paired
		case "split":
			p.Kind = deal.Split
		default:
			meant := ""
			if near := driver.Nearest(s, placements); near != "" {
				meant = fmt.Sprintf(", did you mean %q?", near)
			}
			d.fault(n.at, path, "%q is not known%s (%s)", cut(s), meant, allowedPlacement)
		}
	case n.shape != mapping:
		d.fault(n.at, path, "is %s (%s)", n.shape, allowedPlacement)
	case len(n.fields) == 0:
		d.fault(n.at, path, "lists no agent (%s)", allowedPlacement)
	default:
		for _, f := range n.fields {
			switch f.key {
			case "producers":
				p.Producers = d.selectors(f.value, join(path, f.key))
			case "consumers":
				p.Consumers = d.selectors(f.value, join(path, f.key))
			default:
				meant := ""
				if near := driver.Nearest(f.key, sides); near != "" {
					meant = fmt.Sprintf(", did you mean %q?", near)
				}
				d.fault(f.at, join(path, f.key), "unknown key%s (%s)", meant, strings.Join(sides, ", "))
			}
		}
	}
	return p
}

// selectors reads one list of a placement.
func (d *decoder) selectors(n *node, path string) []deal.Selector {
	if n.shape != list {
		d.fault(n.at, path, "is %s (%s)", n.shape, allowedAgents)
		return nil
	}
	if len(n.items) == 0 || len(n.items) > maxSelectors {
		d.fault(n.at, path, "holds %d agents (1 to %d; left out it is all)", len(n.items), maxSelectors)
		return nil
	}
	var out []deal.Selector
	seen := map[string]bool{}
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		w, ok := d.textOf(item, at, "an agent's name, or labels such as zone=a,disk=ssd")
		if !ok {
			continue
		}
		s, err := deal.ParseSelector(w)
		switch {
		case err != nil:
			d.fault(item.at, at, "%v", err)
		case seen[s.String()]:
			d.fault(item.at, at, "%s is given twice (once)", s)
		default:
			seen[s.String()] = true
			out = append(out, s)
		}
	}
	return out
}

// combinePlacement refuses to place what is not there, and to part what cannot
// be.
func (d *decoder) combinePlacement(s *Scenario) {
	const path = "placement"
	n := d.find(path)
	if n == nil {
		return
	}
	why := ""
	switch s.Mode {
	case engine.Produce:
		why = "mode produce receives nothing"
		d.excluded(why, path+".consumers")
	case engine.Consume:
		why = "mode consume sends nothing"
		d.excluded(why, path+".producers")
	}
	switch {
	case s.Placement.Kind == deal.Spread:
	case why != "":
		d.fault(n.at, path, "%s, so placement cannot be %s (lists, or leave it out)", why, placementText(s.Placement))
	case s.Placement.Kind == deal.Split && d.known(s) && s.System.Definition.Capabilities.InProcess:
		d.fault(n.at, path, "driver %s works inside one process, and split makes two (leave it out)", s.System.Definition.Name)
	}
}

// supersedePlacement takes out of the tree what a mode has no use for, where the
// mode is given later than the placement.
func (d *decoder) supersedePlacement(side string) {
	n := d.find("placement")
	switch {
	case n == nil:
	case n.shape == text, n.shape == mapping && len(n.fields) == 1 && n.fields[0].key == side:
		d.remove("placement")
	default:
		d.root = d.root.without("placement", side)
	}
}

// placementText writes a placement as a scenario has it, "" where it is the
// default.
func placementText(p deal.Placement) string {
	switch p.Kind {
	case deal.Paired:
		return "paired"
	case deal.Split:
		return "split"
	}
	var parts []string
	for _, l := range []struct {
		key string
		of  []deal.Selector
	}{{"producers", p.Producers}, {"consumers", p.Consumers}} {
		if len(l.of) == 0 {
			continue
		}
		texts := make([]string, len(l.of))
		for i, s := range l.of {
			texts[i] = s.String()
		}
		parts = append(parts, l.key+": "+flow("", texts))
	}
	if parts == nil {
		return ""
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
