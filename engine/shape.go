package engine

import (
	"fmt"
	"slices"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/schedule"
)

// A Worker selects which of a run's producers and consumers one process carries. All processes
// number alike: the index of a producer or consumer and the number of a stream are the run's. The
// zero value carries everything.
type Worker struct {
	Producers schedule.Part // those with index modulo Count equal to Index; Count 0: all
	Consumers schedule.Part // likewise, of each subscription
	Follows   bool          // another process creates and removes the destinations
}

// Sends reports whether the worker carries the producer of a stream, in a run with that many
// producers.
func (s Worker) Sends(producers int, stream uint32) bool {
	c := max(1, s.Producers.Count)
	return int(stream)%producers%c == s.Producers.Index
}

// assigned is a Worker of a run with a known number of producers.
type assigned struct {
	Worker
	of int // producers of the run
}

// whole reports whether it is all of the run.
func (s *assigned) whole() bool {
	return max(1, s.Producers.Count) == 1 && max(1, s.Consumers.Count) == 1
}

func (s *assigned) part() schedule.Part {
	return schedule.Part{Index: s.Producers.Index, Count: max(1, s.Producers.Count)}
}

// ownProducers returns the indices of the producers carried, ascending.
func (s *assigned) ownProducers() []int {
	p := s.part()
	var own []int
	for i := p.Index; i < s.of; i += p.Count {
		own = append(own, i)
	}
	return own
}

// producers returns how many producers are carried.
func (s *assigned) producers() int { return len(s.ownProducers()) }

// pacer returns the part of the schedule that pacer i of n executes.
func (s *assigned) pacer(i, n int) schedule.Part {
	p := s.part()
	return schedule.Part{Index: p.Index + p.Count*i, Count: p.Count * n}
}

// ownConsumers returns which of n consumers of a subscription are carried.
func (s *assigned) ownConsumers(n int) []int {
	var own []int
	for i := s.Consumers.Index; i < n; i += max(1, s.Consumers.Count) {
		own = append(own, i)
	}
	return own
}

// A shape is everything about a run that follows from its Config: what its workers have in common,
// and what combining their results needs. It does not change, except for to, if the run is cut
// short.
type shape struct {
	cfg      Config
	assigned assigned
	plan     *schedule.Schedule
	names    []string // of the destinations
	sizes    []int    // distinct, ascending
	keyed    bool
	from, to int64
	stages   []int64 // starts of the window's stages that are recorded separately; nil: none
	messages uint64  // closed loop with a count: those of this worker

	native     bool     // mode Request: the driver's replies confirm
	echoing    bool     // mode Request: echoes send the replies
	replyNames []string // destinations of the replies, by producer
	owners     []int    // the producer of each stream
}

func newShape(cfg Config) (*shape, error) {
	plan := cfg.Schedule
	if cfg.Mode == Consume {
		cfg.Plan.Phases, cfg.Plan.Messages, cfg.Plan.Arrival = nil, 0, schedule.Arrival{} // nothing is offered
		plan = nil
	}
	if plan == nil {
		var err error
		if plan, err = schedule.New(cfg.Plan); err != nil {
			return nil, err
		}
	}
	s := &shape{cfg: cfg, plan: plan, assigned: assigned{Worker: cfg.Worker, of: cfg.Plan.Producers}}
	for _, w := range cfg.Plan.Sizes {
		s.sizes = append(s.sizes, w.Bytes)
	}
	slices.Sort(s.sizes)
	s.sizes = slices.Compact(s.sizes)
	s.keyed = cfg.Plan.Keys.Kind != schedule.NoKeys
	s.from, s.to = plan.WarmUp(), plan.End()
	if s.closed() {
		s.from, s.to = int64(cfg.WarmUp), int64(cfg.WarmUp+cfg.Measure)
		if cfg.Measure == 0 {
			s.to = 1 << 62
		}
	}
	if cfg.Mode == Consume {
		s.from, s.to = 0, 1<<62 // the window is from the first delivery to the last
	}
	s.stages = Stages(cfg.Plan)
	s.names = cfg.Names
	if s.names == nil {
		for d := range cfg.Plan.Destinations {
			s.names = append(s.names, cfg.RunID+"-d"+itoa(d))
		}
	}
	s.messages = s.counted()
	return s, s.prepareRequests()
}

// Stages returns where the stages of a plan begin, in ns since the epoch; none for a window at one
// rate, or with more stages than can be recorded separately.
func Stages(plan schedule.Spec) []int64 {
	phases := plan.Phases
	if len(phases) == 0 || len(phases) > measure.MostStages || len(phases) == 1 && phases[0].Burst == 0 && phases[0].From == phases[0].To {
		return nil
	}
	begins, at := make([]int64, len(phases)), int64(plan.WarmUp)
	for i, p := range phases {
		begins[i] = at
		at += int64(p.For)
	}
	return begins
}

// counted returns how many messages of a counted closed loop this worker sends: its share of the
// producers, so that the workers' shares add up to the whole.
func (s *shape) counted() uint64 {
	n := uint64(s.cfg.Plan.Producers)
	var sum uint64
	for _, p := range s.assigned.ownProducers() {
		i := uint64(p)
		sum += s.cfg.Messages/n + min(1, max(s.cfg.Messages%n, i)-i)
	}
	return sum
}

// closed reports whether this is a closed loop (or has no producers).
func (s *shape) closed() bool {
	return len(s.cfg.Plan.Phases) == 0 && s.cfg.Plan.Arrival.Kind != schedule.Trace
}

// owed reports whether it is known what the subscriptions should receive.
func (s *shape) owed() bool { return s.cfg.Mode != Consume || s.cfg.Of != nil }

// subscriptions returns how many there are, including that of replies.
func (s *shape) subscriptions() int {
	switch {
	case s.cfg.Mode == Produce:
		return 0
	case s.echoing:
		return s.cfg.Subscriptions + 1
	}
	return s.cfg.Subscriptions
}

// ownConsumers returns which consumers of each subscription this worker carries.
func (s *shape) ownConsumers() [][]int {
	own := make([][]int, s.subscriptions())
	for sub := range own {
		if s.isReplies(sub) {
			own[sub] = s.assigned.ownProducers() // replies go to the requester
		} else {
			own[sub] = s.assigned.ownConsumers(s.cfg.Consumers)
		}
	}
	return own
}

// prepareRequests rejects what mode Request does not support, and names the reply destinations if
// the engine echoes.
func (s *shape) prepareRequests() error {
	cfg, can := &s.cfg, s.cfg.Definition.Capabilities
	switch {
	case cfg.Mode != Request:
		return nil
	case !can.Consume:
		return fmt.Errorf("mode request: driver %s has no consumer side: %w", cfg.Definition.Name, driver.ErrUnsupported)
	case cfg.Names != nil:
		return fmt.Errorf("mode request: it makes its own destinations: %w", driver.ErrUnsupported)
	case cfg.Subscriptions != 1:
		return fmt.Errorf("mode request: %d subscriptions would each answer every request (1): %w", cfg.Subscriptions, driver.ErrUnsupported)
	case can.Requests:
		s.native = true
		return nil
	}
	s.echoing = true
	s.owners = make([]int, s.plan.Streams())
	for p := range cfg.Plan.Producers {
		s.replyNames = append(s.replyNames, cfg.RunID+"-r"+itoa(p))
		for _, d := range s.plan.DestinationsOf(p) {
			s.owners[s.plan.Stream(p, d)] = p
		}
	}
	return nil
}

// isReplies reports whether the consumers of a subscription receive replies.
func (s *shape) isReplies(sub int) bool { return s.echoing && sub == replies }

// kindsOf returns the distributions that record a subscription's first deliveries.
func (s *shape) kindsOf(sub int) (response, service measure.Kind) {
	if s.isReplies(sub) {
		return measure.RTTResponse, measure.RTTService
	}
	return measure.E2EResponse, measure.E2EService
}

// confirmKinds returns the distributions that record confirmations.
func (s *shape) confirmKinds() (response, service measure.Kind) {
	if s.native {
		return measure.RTTResponse, measure.RTTService
	}
	return measure.SendResponse, measure.SendService
}

// nameOf returns the name in a result of one of several subscriptions.
func (s *shape) nameOf(sub int) string {
	switch {
	case s.isReplies(sub):
		return "replies"
	case s.echoing:
		return "requests"
	}
	return "s" + itoa(sub)
}
