package scenario

import (
	"fmt"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// maxObjectives is the largest number of objectives of a run.
const maxObjectives = 100

// objectives is a text, or a list of texts. It depends on what the rest of the scenario measures.
var objectives = kind[Scenario]{
	schema: either(object{"type": "string"}, object{"type": "array", "maxItems": maxObjectives, "items": object{"type": "string"}}),
	read: func(d *decoder, n *tree.Node, path string, s *Scenario) bool {
		const allowed = `a list of objectives such as "e2e.p99.9 <= 10ms"`
		items := n.Items
		switch {
		case n.Shape == tree.Text:
			items = []*tree.Node{n}
		case n.Shape != tree.List:
			d.fault(n.At, path, "is %s (%s)", n.Shape, allowed)
			return false
		case len(items) > maxObjectives:
			d.fault(n.At, path, "holds %d objectives (up to %d)", len(items), maxObjectives)
			return false
		}
		first := map[judge.Objective]bool{}
		for i, item := range items {
			at := path
			if n.Shape == tree.List {
				at = fmt.Sprintf("%s[%d]", path, i)
			}
			w, ok := d.textOf(item, at, allowed)
			if !ok {
				continue
			}
			o, err := judge.ParseObjective(w)
			if err != nil {
				d.fault(item.At, at, "%v", err)
				continue
			}
			if first[o] {
				d.fault(item.At, at, "%q is given twice (once)", o)
				continue
			}
			first[o] = true
			if why := unmeasured(s, o); why != "" {
				d.fault(item.At, at, "%q: %s", o, why)
				continue
			}
			s.Objectives = append(s.Objectives, o)
		}
		return true
	},
	text: func(s *Scenario) string {
		texts := make([]string, len(s.Objectives))
		for i, o := range s.Objectives {
			texts[i] = o.String()
		}
		return flow("", texts)
	},
	zero: func(s *Scenario) bool { return len(s.Objectives) == 0 },
}

// unmeasured returns why a run of s cannot be checked against o; "" if it can.
func unmeasured(s *Scenario, o judge.Objective) string {
	of, service := o.Latency()
	switch {
	case of == "" && s.Mode == engine.Produce && o.Receiving():
		return "mode produce receives nothing (an objective about send, or what is sent)"
	case of == "" && s.Mode == engine.Consume && s.Consume.Of == "" && o.Booked():
		return "mode consume does not know what was sent, unless consume.of names the run that sent it (settle, foreign or received.rate)"
	case of == "":
		return ""
	case of == "rtt" && s.Mode != engine.Request:
		return "only mode request measures rtt (send, e2e or settle)"
	case of != "send" && s.Mode == engine.Produce:
		return "mode produce receives nothing (an objective about send)"
	case of != "settle" && s.Mode == engine.Consume:
		return "mode consume does not know when messages were sent (an objective about settle, counts or rates)"
	case o.OfSystem() && engine.Unwired(s.Mode, s.System.Definition.Name, s.System.Config) != "":
		return engine.Unwired(s.Mode, s.System.Definition.Name, s.System.Config)
	case of != "settle" && s.Load.Closed && !service && !o.OfSystem():
		return fmt.Sprintf("a closed loop (rate: max) has no due instants to count a response from (%s.service)", of)
	}
	return ""
}

// combineUntil rejects until_decided without an objective that can be decided during the run.
func (d *decoder) combineUntil(s *Scenario) {
	const path = "until_decided"
	if s.Until && judge.WatchFor(s.Objectives, nil, 1) == nil {
		d.fault(d.at(path), path, `needs an objective about a percentile in slo, such as "e2e.p99 <= 10ms" (no)`)
	}
}
