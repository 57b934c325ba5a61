package scenario

import (
	"fmt"
	"slices"
	"strings"

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

// placement is where producers and consumers are.
var placement = func() kind[deal.Placement] {
	words := placed(oneOf(allowedPlacement, placements, deal.Paired, deal.Split), func(p *deal.Placement) *deal.Kind { return &p.Kind })
	agents := listOf(either(texts(selectorPattern), object{"type": []string{"integer", "boolean"}}), maxSelectors)
	agents["uniqueItems"] = true
	lists := func(p *deal.Placement) []*[]deal.Selector { return []*[]deal.Selector{&p.Producers, &p.Consumers} } // as sides
	return kind[deal.Placement]{
		words: placements,
		schema: either(words.schema, object{
			"type": "object", "minProperties": 1, "additionalProperties": false,
			"properties": object{sides[0]: agents, sides[1]: agents},
		}),
		read: func(d *decoder, n *node, path string, p *deal.Placement) bool {
			if n.shape != mapping {
				return words.read(d, n, path, p)
			}
			if len(n.fields) == 0 {
				d.fault(n.at, path, "lists no agent (%s)", allowedPlacement)
			}
			for _, f := range n.fields {
				if i := slices.Index(sides, f.key); i >= 0 {
					*lists(p)[i] = d.selectors(f.value, join(path, f.key))
					continue
				}
				d.fault(f.at, join(path, f.key), "unknown key%s (%s)", meant(f.key, sides), strings.Join(sides, ", "))
			}
			return true
		},
		text: func(p *deal.Placement) string {
			if p.Kind != deal.Spread {
				return words.text(p)
			}
			var parts []string
			for i, l := range lists(p) {
				texts := make([]string, len(*l))
				for i, s := range *l {
					texts[i] = s.String()
				}
				if len(texts) > 0 {
					parts = append(parts, sides[i]+": "+flow("", texts))
				}
			}
			return "{" + strings.Join(parts, ", ") + "}"
		},
	}
}()

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
		d.fault(n.at, path, "%s, so placement cannot be %s (lists, or leave it out)", why, placement.text(&s.Placement))
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
