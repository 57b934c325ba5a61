package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/fault"
	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// ErrOutside refuses to execute a run with a network in a process that is not at its clients' end.
var ErrOutside = errors.New("a run with a network is done by a process that network.Enter started")

// CheckNetwork refuses scenarios that need a network if this host cannot provide one, and those that cannot
// run from its clients' end. agents says whether agents execute the runs. wanted is false if no scenario
// needs a network.
func CheckNetwork(all []*scenario.Scenario, agents bool) (wanted bool, err error) {
	wants := func(s *scenario.Scenario) bool { return s.Networked(agents) }
	i := slices.IndexFunc(all, wants)
	if i < 0 {
		return false, nil
	}
	for _, s := range all {
		if s.System.Start == scenario.StartNone && !s.System.Definition.Capabilities.InProcess {
			return true, fmt.Errorf("%s: measures a system that weir does not start, and %s has a network or a cut: from there nothing else is reached (a run for each)", s.Name, all[i].Name)
		}
	}
	return true, network.Check()
}

// link is the network between clients and servers, if the scenario asks for one.
type link struct {
	*measurement
	made    *network.Link   // nil: none requested
	between *result.Network // the same, after the run
	broke   error           // why it failed during the run
}

// start makes the network.
func (m *link) start(ctx context.Context, stop <-chan struct{}) (err error) {
	s := m.scenario
	if !s.Networked(m.team.remote()) {
		return nil
	}
	if !network.Inside() {
		return ErrOutside
	}
	m.observer.Doing("making the network and measuring it")
	starting, abort := abortable(ctx, stop)
	defer abort()
	spec := s.Network.Spec(s.Seed)
	if s.Cuts() {
		spec.Nodes = s.System.Nodes
	}
	if m.made, err = network.Start(starting, m.host.Self, spec); err != nil {
		return stopped(err, stop)
	}
	n := m.made.Network()
	m.observer.Note("the network is ready: round trip %v, the link's own part %v", rounded(n.RoundTripNS), rounded(n.BareRoundTripNS))
	return nil
}

func (m *link) stop(ctx context.Context, _ *engine.Raw) {
	if m.made == nil {
		return
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := m.made.Stop(ending); err != nil {
		m.observer.Complain(fmt.Errorf("ending the network: %w", err))
	}
}

func (m *link) result(_ *engine.Raw, r *result.Result) { r.Network = m.between }

// rounded is a time rounded for display.
func rounded(ns int64) time.Duration { return time.Duration(ns).Round(10 * time.Microsecond) }

// bind returns the address that servers listen on, within to start them in, and places with one place per
// node if nodes are separate.
func (m *link) bind() (address string, within func(func() error) error, places []broker.Place) {
	if m.made == nil {
		return "", nil, nil
	}
	for _, n := range m.made.Nodes() {
		places = append(places, broker.Place{Address: n.Address, Space: n.Space})
	}
	return network.SystemAddress, m.made.Within, places
}

// cutPairs drops all packets between the nodes of each pair; 0 stands for the clients.
func (m *link) cutPairs(pairs [][2]int) error {
	at := func(node int) string {
		if node == 0 {
			return network.ClientAddress
		}
		return network.NodeAddress(node)
	}
	var all []network.Pair
	for _, p := range pairs {
		all = append(all, network.Pair{at(p[0]), at(p[1])})
	}
	return m.made.Sever(all)
}

// over reads the network's counters after a run, while the network still exists.
func (m *link) over() {
	if m.made == nil {
		return
	}
	n := m.made.Network()
	if p, ok := network.ProfileNamed(m.scenario.Network.Profile); ok {
		n.Profile, n.Source = p.Name, p.Source
	}
	to, from, err := m.made.Carried()
	if err == nil && to.Packets == 0 {
		err = errors.New("no packet of the run passed the network")
	}
	n.ToSystem.Carried, n.FromSystem.Carried = result.PacketsDone(to), result.PacketsDone(from)
	m.between, m.broke = &n, err
}

// part partitions the network as the scenario says, until ctx ends. It returns what was done as faults, in
// time order.
func (m *link) part(ctx context.Context, epoch int64) (done []result.Fault) {
	s := m.scenario
	clock := pace.NewClock()
	now := func() int64 { return clock.Now() + clock.Epoch().MonotonicNS - epoch }
	for _, c := range network.Changes(s.Network.Partitions, s.WarmUp, max(0, s.Length()-s.WarmUp)) {
		if !fault.Until(ctx, now, int64(c.At)) {
			break
		}
		at := now() // the fault begins before the first packet is dropped, and ends after the last
		err := m.made.Cut(c.To, c.From)
		if c.Ends {
			at = now()
		} else {
			done = append(done, result.Fault{Do: "partition", To: c.Of, DueNS: int64(c.At), BeganNS: at, Processes: []string{"network"}})
		}
		f, text := &done[len(done)-1], "partition "+c.Of
		switch {
		case err != nil:
			f.Error = err.Error()
			if !c.Ends {
				f.Processes = nil
			}
			text += " failed: " + err.Error()
		case c.Ends:
			f.UndoneNS = &at
			text += " ended"
		}
		m.event(engine.Event{At: at, Kind: "injected", Text: text})
	}
	return done
}

// inOrder merges faults of servers and of the network by time.
func inOrder(a, b []result.Fault) []result.Fault {
	return slices.SortedStableFunc(slices.Values(slices.Concat(a, b)), func(x, y result.Fault) int { return cmp.Compare(x.BeganNS, y.BeganNS) })
}

// Obtainable refuses scenarios with servers that cannot be installed or started on this host, joining all
// that the host lacks. It changes nothing.
func Obtainable(ctx context.Context, h Host, all []*scenario.Scenario) error {
	var recipes []*broker.Recipe
	for _, s := range all {
		if s.System.Start == scenario.StartProcess {
			recipes = append(recipes, s.System.Recipe)
		}
	}
	if len(recipes) == 0 {
		return nil
	}
	cache, err := broker.CacheDir(h.Env)
	if err != nil {
		return fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
	}
	return broker.Obtainable(ctx, recipes, cache)
}

// Install installs the servers that weir starts by recipes for the scenarios, unless installed.
func Install(ctx context.Context, h Host, all []*scenario.Scenario, note func(string)) error {
	cache, err := broker.CacheDir(h.Env)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.System.Start != scenario.StartProcess {
			continue
		}
		if _, err := h.install(ctx, &s.System, cache, note); err != nil {
			return fmt.Errorf("installing %s: %w", s.System.Recipe.Name, err)
		}
	}
	return nil
}
