package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/schedule"
)

// Plan returns the schedule's specification.
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

// Config returns the engine's configuration of the run, without the clock, the calibration and the
// callbacks, which the caller adds. id and run identify the run.
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

// Of returns the number of the run whose messages are consumed in mode consume; 0 if none is given.
func (s *Scenario) Of() uint64 {
	if s.of == nil {
		return 0
	}
	return s.of.Run.Number
}

// every returns the sampling interval of a run: finer for a short run, or one that may end early, so
// that the correlation of its samples can be estimated from its parts.
func (s *Scenario) every() time.Duration {
	switch window := s.Length() - s.WarmUp; {
	case len(s.Faults)+len(s.Network.Partitions) > 0 || s.Consume.Pause.Wanted(): // effects are in tenths of a second
		return 100 * time.Millisecond
	case window >= 5*time.Minute && !s.Until:
		return time.Second
	case window > 0 && window < 5*time.Second:
		return 50 * time.Millisecond
	}
	return 100 * time.Millisecond
}

// Length returns how long messages are sent, including the warm-up; 0 if unknown beforehand.
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

// ServerOptions returns the given options for the server that weir starts, as in driver.Service.
func (s *Scenario) ServerOptions() map[string]string {
	out := map[string]string{}
	for _, o := range s.System.Options {
		if name, ok := strings.CutPrefix(o.Name, driver.ServerPrefix); ok && len(o.Values) == 1 {
			out[name] = o.Values[0]
		}
	}
	return out
}

// Connect sets the address of a system that weir started, and those options that the driver has and
// the scenario leaves open.
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
