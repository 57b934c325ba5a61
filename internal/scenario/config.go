package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/schedule"
)

// Plan returns what the schedule is made of.
func (s *Scenario) Plan() schedule.Spec {
	spec := schedule.Spec{
		Seed:         s.Seed,
		Arrival:      s.Load.Arrival,
		WarmUp:       s.WarmUp,
		Producers:    s.Topology.Producers,
		Destinations: s.Topology.Destinations,
		BatchMin:     s.Load.Batch.Min,
		BatchMax:     s.Load.Batch.Max,
		Sizes:        s.Message.Sizes,
		Keys:         s.Message.Keys,
	}
	switch {
	case s.Load.Closed || s.Mode == engine.Consume || s.Load.Arrival.Kind == schedule.Trace:
	case len(s.Load.Profile) > 0:
		spec.Phases = s.Load.Profile
	default:
		spec.Phases = []schedule.Phase{{From: s.Load.Rate, To: s.Load.Rate, For: s.Measure}}
		spec.Messages = s.Messages
	}
	return spec
}

// Config returns the run for the engine, but for the clock, the calibration and
// the callbacks, which are the caller's. id and run identify it.
func (s *Scenario) Config(id string, run uint32) engine.Config {
	c := engine.Config{
		RunID:         id,
		Run:           run,
		Definition:    s.System.Definition,
		Options:       s.System.Config,
		Plan:          s.Plan(),
		Schedule:      s.schedule,
		Mode:          s.Mode,
		Names:         s.Topology.Names,
		Partitions:    s.Topology.Partitions,
		Replicas:      s.Topology.Replication,
		Subscriptions: s.Topology.Subscriptions,
		Consumers:     s.Topology.Consumers,
		Guarantee:     s.System.Guarantee,
		Settle:        s.Consume.Settle,
		Prefetch:      s.Consume.Prefetch,
		Work:          s.Consume.Work,
		Refuse:        s.Consume.Fail,
		DeadLetter:    s.Consume.DeadLetter,
		Churn:         s.Consume.Churn,
		Pause:         s.Consume.Pause,
		From:          s.Consume.From,
		Durable:       s.Consume.Durable,
		InFlight:      s.Load.InFlight,
		Received:      s.Load.Received,
		WhenFull:      s.Load.WhenFull,
		Payload:       s.Message.Payload,
		Drain:         s.Drain,
		Every:         s.every(),
		AfterDrain:    s.AfterDrain,
		Processors:    s.Processors,
	}
	if s.of != nil {
		c.Run, c.Of = uint32(s.of.Run.Number), s.of.Streams
	}
	if s.Load.Closed {
		c.WarmUp, c.Measure, c.Messages = s.WarmUp, s.Measure, s.Messages
	}
	return c
}

// Of returns the number of the run whose messages a run in mode consume books; 0: none is given.
func (s *Scenario) Of() uint64 {
	if s.of == nil {
		return 0
	}
	return s.of.Run.Number
}

// every is how often a run is read: a short one, or one that may end early, often
// enough to tell from its parts how much its samples depend on one another.
func (s *Scenario) every() time.Duration {
	switch window := s.Length() - s.WarmUp; {
	case len(s.Faults)+len(s.Network.Partitions) > 0 || s.Consume.Pause.Wanted(): // what follows is told in tenths of a second
		return 100 * time.Millisecond
	case window >= 5*time.Minute && !s.Until:
		return time.Second
	case window > 0 && window < 5*time.Second:
		return 50 * time.Millisecond
	}
	return 100 * time.Millisecond
}

// Length returns how long messages are sent, warm-up included; 0 where that is
// not known beforehand.
func (s *Scenario) Length() time.Duration {
	if s.Load.Closed {
		if s.Messages > 0 {
			return 0
		}
		return s.WarmUp + s.Measure
	}
	if s.schedule == nil {
		return 0
	}
	return time.Duration(s.schedule.End())
}

// ServerOptions returns the given options of the server that weir starts, as
// driver.Service takes them.
func (s *Scenario) ServerOptions() map[string]string {
	out := map[string]string{}
	for _, o := range s.System.Options {
		if name, ok := strings.CutPrefix(o.Name, driver.ServerPrefix); ok && len(o.Values) == 1 {
			out[name] = o.Values[0]
		}
	}
	return out
}

// Connect sets where the driver finds a system that weir started, and of the other
// options those that the scenario leaves open and the driver has.
func (s *Scenario) Connect(address []string, options map[string][]string) error {
	known := driver.Options(s.System.Config)
	for name, values := range options {
		if s.System.given(name) || !slices.ContainsFunc(known, func(o driver.Option) bool { return o.Name == name }) {
			continue
		}
		if err := driver.SetOption(s.System.Config, name, values...); err != nil {
			return err
		}
		s.connected = append(s.connected, name)
	}
	return driver.SetOption(s.System.Config, "address", address...)
}
