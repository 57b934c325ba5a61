package scenario

import (
	"slices"
	"strings"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// maxSelectors limits each list of a placement.
const maxSelectors = 1024

var (
	placements = []string{"paired", "split"}
	sides      = []string{"producers", "consumers"} // of a placement by lists
)

const (
	allowedPlacement = "paired, split, or lists such as {producers: [a, zone=b], consumers: [c]}"
	allowedAgents    = "a list of agents, by name or by label, such as [a, zone=b]"
)

// placementKind says where producers and consumers run.
var placementKind = func() kind[placement.Spec] {
	words := placed(oneOf(allowedPlacement, placements, placement.Paired, placement.Split), func(p *placement.Spec) *placement.Kind { return &p.Kind })
	one := single("an agent's name, or labels such as zone=a,disk=ssd", either(texts(selectorPattern), object{"type": []string{"integer", "boolean"}}),
		func(s string) (placement.Selector, error) {
			v, err := placement.ParseSelector(s)
			if err != nil {
				return v, inFull{err}
			}
			return v, nil
		}, func(s placement.Selector) string { return quote(s.String()) })
	agents := several(one, maxSelectors, "holds %d agents (1 to %d; left out it is all)", allowedAgents, true)
	agents.schema["uniqueItems"] = true
	lists := func(p *placement.Spec) []*[]placement.Selector {
		return []*[]placement.Selector{&p.Producers, &p.Consumers}
	} // as sides
	return kind[placement.Spec]{
		words: placements,
		schema: either(words.schema, object{
			"type": "object", "minProperties": 1, "additionalProperties": false,
			"properties": object{sides[0]: agents.schema, sides[1]: agents.schema},
		}),
		read: func(d *decoder, n *tree.Node, path string, p *placement.Spec) bool {
			if n.Shape != tree.Mapping {
				return words.read(d, n, path, p)
			}
			ok := len(n.Fields) > 0
			if !ok {
				d.fault(n.At, path, "lists no agent (%s)", allowedPlacement)
			}
			for _, f := range n.Fields {
				if i := slices.Index(sides, f.Key); i >= 0 {
					ok = agents.read(d, f.Value, tree.Join(path, f.Key), lists(p)[i]) && ok
					continue
				}
				ok = false
				d.fault(f.At, tree.Join(path, f.Key), "unknown key%s (%s)", meant(f.Key, sides), strings.Join(sides, ", "))
			}
			return ok
		},
		text: func(p *placement.Spec) string {
			if p.Kind != placement.Spread {
				return words.text(p)
			}
			var parts []string
			for i, l := range lists(p) {
				if len(*l) > 0 {
					parts = append(parts, sides[i]+": "+agents.text(l))
				}
			}
			return "{" + strings.Join(parts, ", ") + "}"
		},
	}
}()

// combinePlacement rejects a placement of missing clients, and an impossible division.
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
	case s.Placement.Kind == placement.Spread:
	case why != "":
		d.fault(n.At, path, "%s, so placement cannot be %s (lists, or leave it out)", why, placementKind.text(&s.Placement))
	case s.Placement.Kind == placement.Split && d.known(s) && s.System.Definition.Capabilities.InProcess:
		d.fault(n.At, path, "driver %s works inside one process, and split makes two (leave it out)", s.System.Definition.Name)
	}
}

// supersedePlacement removes from the tree what a mode cannot use, if the mode comes from a later
// layer than the placement.
func (d *decoder) supersedePlacement(side string) {
	n := d.find("placement")
	switch {
	case n == nil:
	case n.Shape == tree.Text, n.Shape == tree.Mapping && len(n.Fields) == 1 && n.Fields[0].Key == side:
		d.remove("placement")
	default:
		d.root = d.root.Without("placement", side)
	}
}
