package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
)

// An outlook predicts the guarantees of a system before weir starts it.
type outlook struct {
	def      driver.Definition
	config   driver.Config
	recipe   *broker.Recipe // nil: embedded
	settings map[string]string
	given    func(option string) bool
	servers  driver.Servers
}

func (s *Scenario) outlook() *outlook {
	sys := &s.System
	return &outlook{
		def: sys.Definition, config: driver.Clone(sys.Config), recipe: sys.Recipe, settings: sys.ForRecipe, given: sys.given,
		servers: driver.Servers{Nodes: sys.Nodes, Replicas: s.Topology.Replication, Requests: s.Mode == engine.Request},
	}
}

// informed returns the driver's settings with what the recipe sets for any number of nodes: a driver may
// support more with them.
func (s *System) informed() driver.Config {
	o := outlook{def: s.Definition, config: driver.Clone(s.Config), recipe: s.Recipe, settings: s.ForRecipe, given: s.given}
	if s.Recipe != nil {
		o.servers.Nodes = s.Recipe.Nodes[0]
	}
	o.know()
	return o.config
}

// know sets the options that the recipe gives the driver, except those given explicitly, and returns
// their names.
func (o *outlook) know() (names []string) {
	if o.recipe == nil {
		return nil
	}
	known := driver.Options(o.config)
	for name, values := range o.recipe.Known(o.def.Name, o.servers.Nodes, o.settings) {
		if o.given(name) || !slices.ContainsFunc(known, func(k driver.Option) bool { return k.Name == name }) {
			continue
		}
		if driver.SetOption(o.config, name, values...) == nil { // the recipe's tests ensure that it can be set
			names = append(names, name)
		}
	}
	return names
}

// A way is a change of settings that may strengthen the guarantee of confirmations.
type way struct {
	key   string // at most one change per key is applied
	flag  string
	apply func(*outlook) error
}

// ways lists the changes: options first, so that they are tried before more servers.
func (o *outlook) ways() []way {
	var all []way
	for _, opt := range driver.Options(o.config) {
		for _, v := range opt.Firm {
			all = append(all, way{opt.Name, "--option " + opt.Name + "=" + v, func(o *outlook) error { return o.set(opt.Name, v) }})
		}
	}
	count := func(key string, n int, of func(*outlook) *int) {
		all = append(all, way{key, fmt.Sprintf("--%s %d", key, n), func(o *outlook) error { *of(o) = n; return nil }})
	}
	for n := o.servers.Nodes; n <= maxNodes; n++ {
		if n > o.servers.Nodes && !o.forms(n) {
			continue
		}
		if n > o.servers.Replicas && o.def.Capabilities.Replicas {
			count("replication", n, func(o *outlook) *int { return &o.servers.Replicas })
		}
		if n > o.servers.Nodes {
			count("nodes", n, func(o *outlook) *int { return &o.servers.Nodes })
		}
	}
	return all
}

// forms reports whether the given number of servers forms a system.
func (o *outlook) forms(nodes int) bool {
	if o.recipe != nil {
		return slices.Contains(o.recipe.Nodes, nodes)
	}
	return o.def.Nodes != nil && o.def.Nodes(nodes) == nil
}

// set sets an option, and the recipe setting of the same name.
func (o *outlook) set(name, value string) error {
	if err := driver.SetOption(o.config, name, value); err != nil {
		return err
	}
	setting, server := strings.CutPrefix(name, driver.ServerPrefix)
	if !server || o.recipe == nil {
		return nil
	}
	for _, own := range driver.Options(o.config) {
		if own.Name == name {
			value = own.Default // as the driver writes it: yes is true
		}
	}
	o.settings[setting] = value
	return o.recipe.CheckSetting(setting, value)
}

// after returns what confirmations guarantee after these changes; 0 if they cannot be combined.
func (o *outlook) after(ways []way) driver.Guarantee {
	t := *o
	t.config, t.settings = driver.Clone(o.config), map[string]string{}
	for k, v := range o.settings {
		t.settings[k] = v
	}
	for _, w := range ways {
		if w.apply(&t) != nil {
			return 0
		}
	}
	t.know()
	if t.servers.Replicas > t.servers.Nodes || driver.Check(t.config) != nil {
		return 0
	}
	g, _ := t.def.PredictGuarantee(t.config, t.servers)
	return g
}

// mostWays is the largest number of changes combined.
const mostWays = 4

// reach returns the smallest set of changes after which confirmations guarantee want, preferring the
// first that guarantees no more than that. best is the strongest guarantee found.
func (o *outlook) reach(want driver.Guarantee) (found []way, best driver.Guarantee) {
	all := o.ways()
	var try func(taken []way, from, more int) bool
	try = func(taken []way, from, more int) bool {
		if more == 0 {
			g := o.after(taken)
			best = max(best, g)
			if g == want || g > want && found == nil {
				found = slices.Clone(taken)
			}
			return g == want
		}
		for i := from; i < len(all); i++ {
			if slices.ContainsFunc(taken, func(w way) bool { return w.key == all[i].key }) {
				continue
			}
			if try(append(taken, all[i]), i+1, more-1) {
				return true
			}
		}
		return false
	}
	for n := 1; n <= mostWays && found == nil; n++ {
		try(nil, 0, n)
	}
	if want == driver.Replicated && len(found) == 1 && o.after(found) > want {
		stronger := found
		if found = nil; !try(nil, 0, 2) { // a user who asks for replicas is told how to get them
			found = stronger
		}
	}
	return found, best
}

// onThePage names the settings on the driver's page that give what is wanted, if only some server
// versions have them, and which of the driver's recipes can start such servers; "" if no row of the
// page does.
func (o *outlook) onThePage(want driver.Guarantee) string {
	for _, row := range o.def.Confirmations {
		if row.Guarantee < want {
			continue
		}
		for _, ways := range o.waysOf(row.When) {
			gives := o.after(ways)
			if gives < want {
				continue
			}
			var flags []string
			for _, w := range ways {
				flags = append(flags, w.flag)
			}
			help := fmt.Sprintf("%s gives %s where the servers have that: weir drivers %s", strings.Join(flags, " "), gives, o.def.Name)
			if others := o.others(ways, want); len(others) > 0 {
				help += "; weir can also start --recipe " + strings.Join(others, " or ")
			}
			return help
		}
	}
	return ""
}

// waysOf returns the changes needed to set the options of a row of the driver's page.
func (o *outlook) waysOf(when driver.Conditions) [][]way {
	options := driver.Options(o.config)
	all := [][]way{nil}
	for _, c := range when {
		i := slices.IndexFunc(options, func(k driver.Option) bool { return k.Name == c.Name })
		if i < 0 || c.Holds(options[i].Default) {
			continue
		}
		var longer [][]way
		for _, value := range c.Examples() {
			w := way{c.Name, "--option " + c.Name + "=" + value, func(o *outlook) error { return o.set(c.Name, value) }}
			for _, ways := range all {
				longer = append(longer, append(slices.Clone(ways), w))
			}
		}
		all = longer
	}
	return all
}

// others names the driver's other recipes that give what is wanted with the same number of servers.
func (o *outlook) others(ways []way, want driver.Guarantee) (names []string) {
	all, err := broker.Recipes(o.def)
	if err != nil || o.recipe == nil {
		return nil
	}
	for _, r := range all {
		other := *o
		other.recipe = r
		if r.Name != o.recipe.Name && r.Install != nil && other.forms(o.servers.Nodes) && other.after(ways) >= want {
			names = append(names, r.Name)
		}
	}
	return names
}

// predictGuarantee applies what the recipe gives the driver, and rejects a guarantee that the servers will not
// give.
func (d *decoder) predictGuarantee(s *Scenario) {
	switch {
	case len(d.faults) > 0:
		return
	case s.System.Start == StartNone:
		d.bound(s)
		return
	}
	o := s.outlook()
	s.connected = o.know()
	s.System.Config = o.config
	want := s.System.Guarantee
	gives, predicts := o.def.PredictGuarantee(o.config, o.servers)
	if !predicts || gives >= want {
		return
	}
	ways, best := o.reach(want)
	help := "up to " + max(gives, best).String()
	if len(ways) > 0 {
		var flags []string
		for _, w := range slices.Backward(ways) { // servers before options
			flags = append(flags, w.flag)
		}
		help = strings.Join(flags, " ") + " gives " + o.after(ways).String()
	} else if known := o.onThePage(want); known != "" {
		help = known
	}
	d.fault(d.at("system.guarantee"), "system.guarantee", "driver %s confirms at most %s with these settings (%s)", o.def.Name, gives, help)
}

// bound rejects a guarantee that the user's own servers cannot give with any values of the driver's
// options. What only the servers know is checked when weir connects.
func (d *decoder) bound(s *Scenario) {
	def, want, theirs := s.System.Definition, s.System.Guarantee, driver.Servers{Requests: s.Mode == engine.Request}
	most, bounds := def.PredictGuarantee(s.System.Config, theirs)
	if !bounds || most >= want {
		return
	}
	help, best := "", most
	for _, set := range choices(s.System.Config) {
		cfg := driver.Clone(s.System.Config)
		var flags []string
		for _, x := range set {
			if driver.SetOption(cfg, x[0], x[1]) != nil {
				flags = nil
				break
			}
			flags = append(flags, "--option "+x[0]+"="+x[1])
		}
		if flags == nil || driver.Check(cfg) != nil {
			continue
		}
		g, _ := def.PredictGuarantee(cfg, theirs)
		if best = max(best, g); g >= want {
			help = strings.Join(flags, " ") + " allows " + g.String()
			break
		}
	}
	if help == "" {
		help = "up to " + best.String()
	}
	anywhere := ", whatever the servers are set to"
	if !slices.ContainsFunc(driver.Options(s.System.Config), func(o driver.Option) bool { return o.Name == "address" }) {
		anywhere = "" // there is none
	}
	d.fault(d.at("system.guarantee"), "system.guarantee", "driver %s confirms at most %s with these options%s (%s)", def.Name, most, anywhere, help)
}

// choices returns settings of the client's options that may strengthen a confirmation: first those of
// one option, then those of two.
func choices(cfg driver.Config) (sets [][][2]string) {
	var all [][2]string
	for _, o := range driver.Options(cfg) {
		if strings.HasPrefix(o.Name, driver.ServerPrefix) {
			continue
		}
		for _, v := range o.Firm {
			all = append(all, [2]string{o.Name, v})
		}
	}
	for _, one := range all {
		sets = append(sets, [][2]string{one})
	}
	for i, one := range all {
		for _, other := range all[i+1:] {
			if other[0] != one[0] {
				sets = append(sets, [][2]string{one, other})
			}
		}
	}
	return sets
}
