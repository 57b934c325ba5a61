package judge

import (
	"fmt"
	"strings"

	"github.com/weirmq/weir/result"
)

// standing says which percentiles are not touched by what spoils others, as the
// end of a sentence; "" where none is. Both are in the order of their percentiles.
func standing(stand, spoilt []result.Percentile) string {
	switch {
	case len(stand) == 0 || len(spoilt) == 0:
		return ""
	case stand[len(stand)-1].P < spoilt[0].P:
		return "; the percentiles below stand"
	}
	names := make([]string, len(stand))
	for i := range stand {
		names[i] = name(stand[i].P)
	}
	return "; " + strings.Join(names, ", ") + " stand"
}

// below returns the percentiles of the response that are figures, below p.
func (in *Inputs) below(p float64) []result.Percentile {
	var out []result.Percentile
	for _, x := range in.Response.Percentiles {
		if x.P < p && x.Supported {
			out = append(out, x)
		}
	}
	return out
}

// stoodStill says, as a sentence with a space before it, for how long the host
// itself stood still at percentiles of lateness, where that is enough of it to be
// the reason, and otherwise how busy it was; "" where nothing is known. Of several
// agents' hosts it takes at each percentile the one that stood the longest.
func (in *Inputs) stoodStill(late []result.Percentile) string {
	hosts := []*Inputs{in}
	for i := range in.Agents {
		hosts = append(hosts, in.Agents[i].inputs(in))
	}
	var said []string
	for i := range late {
		longest := int64(0)
		for _, h := range hosts {
			if h.Host == nil || h.Host.Hiccups == nil {
				continue
			}
			for _, w := range witnessed(h.Host.Hiccups) {
				if w.p == late[i].P {
					longest = max(longest, h.stall(w.ns))
				}
			}
		}
		if longest > 0 && float64(longest) >= stallIsWhy*float64(late[i].NS) {
			said = append(said, fmt.Sprintf("%s at %s", nanos(longest), name(late[i].P)))
		}
	}
	if len(said) == 0 && in.Host != nil && in.Host.Usage != nil && in.Host.Usage.HostBusyShare != nil {
		return fmt.Sprintf(" All cores of the host together were %s busy.", percent(*in.Host.Usage.HostBusyShare))
	}
	if len(said) == 0 {
		return ""
	}
	whose := "The host itself"
	if len(in.Agents) > 0 {
		whose = "A host itself"
	}
	return fmt.Sprintf(" %s stood still for %s (a thread that only sleeps met it).", whose, strings.Join(said, ", "))
}
