package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/schedule"
)

// combine checks keys against each other and against what the driver declares. It sets the defaults
// that depend on other keys.
func (d *decoder) combine(s *Scenario) {
	d.combineFleet(s)
	d.combineSystem(s)
	d.combineSettle(s)
	d.combineTimes(s)
	d.combineUntil(s)
	d.combineOf(s)
	if !d.has("topology.destinations") {
		s.Topology.Destinations = max(1, len(s.Topology.Names))
	}
	if s.Mode == engine.Consume {
		// Nothing is sent; the window is from the first delivery to the last.
		s.WarmUp, s.Measure, s.Messages = 0, 0, 0
		s.Load.InFlight = 1
	} else {
		d.combineInFlight(s)
	}
	d.combineLoad(s)
	d.combineNames(s)
	d.combineMode(s)
	d.combinePosition(s)
	d.combinePlacement(s)
	if d.known(s) {
		d.combineDriver(s)
		d.combineTaking(s)
	}
	if s.Mode != engine.Consume && s.System.Start != StartNone && s.Topology.Replication > s.System.Nodes {
		d.fault(d.later("topology.replication", "system.nodes"), "topology.replication",
			"is %d with %d node(s) (at most system.nodes)", s.Topology.Replication, s.System.Nodes)
	}
	d.predictGuarantee(s)
}

// combineSettle rejects a settle mode that the driver does not support.
func (d *decoder) combineSettle(s *Scenario) {
	can, settle := s.System.Definition.Capabilities, s.Consume.Settle
	if !d.took("consume.settle") || !d.known(s) || !can.Consume || slices.Contains(can.Settle, settle) {
		return
	}
	allowed := "leave it out"
	if len(can.Settle) > 0 {
		allowed = joined(can.Settle)
	}
	d.fault(d.at("consume.settle"), "consume.settle", "driver %s does not settle by %s (%s)", s.System.Definition.Name, settle, allowed)
}

// combineTaking applies consume.batch: messages are taken in batches and acknowledged together if the
// driver supports it, and individually otherwise.
func (d *decoder) combineTaking(s *Scenario) {
	const path = "consume.batch"
	can, n := s.System.Definition.Capabilities, s.Consume.Batch
	if n == 0 || !d.took(path) || !can.Consume || s.Mode == engine.Produce {
		return
	}
	if len(can.Settle) == 0 || can.Settle[0] == driver.SettleNone {
		d.fault(d.at(path), path, "driver %s acknowledges nothing (leave it out)", s.System.Definition.Name)
		return
	}
	settle := driver.SettleBatch
	if !slices.Contains(can.Settle, settle) {
		settle = can.Settle[0]
	}
	if d.took("consume.settle") && s.Consume.Settle != settle {
		d.fault(d.later("consume.settle", path), "consume.settle", "is %s, but consume.batch settles by %s (leave it out)", s.Consume.Settle, settle)
	}
	if d.took("consume.prefetch") && s.Consume.Prefetch != n {
		d.fault(d.later("consume.prefetch", path), "consume.prefetch", "is %d, but consume.batch sets it to %d (leave it out)", s.Consume.Prefetch, n)
	}
	s.Consume.Settle, s.Consume.Prefetch = settle, n
}

// joined lists values by name.
func joined[T fmt.Stringer](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = v.String()
	}
	return strings.Join(words, ", ")
}

// combineTimes rejects two different lengths for one run, and one that is too long. The default of
// measure applies only if nothing else sets the length.
func (d *decoder) combineTimes(s *Scenario) {
	if s.Mode == engine.Consume || s.Mode == engine.Produce {
		d.excluded("mode "+s.Mode.String()+" receives nothing that it sent", "after_drain")
	}
	switch {
	case d.has("messages") && d.has("measure"):
		d.fault(d.later("messages", "measure"), "messages", "excludes measure: both set the length (give one of them)")
	case !d.has("measure") && (d.has("messages") || d.planned(s)):
		s.Measure = 0
	}
	if s.WarmUp+s.Measure > MaxDuration {
		d.fault(d.later("measure", "warmup"), "measure", "is with warmup longer than a run may be (up to %s together)", longest)
	}
}

// planned reports whether a profile or trace determines when messages are due.
func (d *decoder) planned(s *Scenario) bool {
	return d.has("load.profile") || s.Load.Arrival.Kind == schedule.Trace
}

// combineInFlight completes load.in_flight, and rejects an invalid one.
func (d *decoder) combineInFlight(s *Scenario) {
	const path = "load.in_flight"
	if s.Message.Largest() == 0 {
		return // the size is invalid
	}
	d.combineReceived(s)
	var intake driver.Intake
	if r, is := s.System.Config.(driver.Refusing); is {
		intake = r.Intake()
	}
	n, err := engine.InFlight(s.Load.InFlight, s.Topology.Producers, s.Message.Largest(), s.Load.Batch.Max, s.Load.Closed, s.Memory, intake)
	if err != nil {
		d.fault(d.later(path, "topology.producers", "message.size", "load.batch", "limits.memory"), path, "%v", err)
		return
	}
	s.Load.InFlight = n
}

// combineReceived sets one message in flight by default if messages are in flight until received, and
// rejects more than the engine scans.
func (d *decoder) combineReceived(s *Scenario) {
	const path = "load.in_flight_until"
	if !s.Load.Received {
		return
	}
	if s.Load.InFlight == 0 {
		s.Load.InFlight = max(1, s.Load.Batch.Max)
	}
	switch {
	case s.Mode != engine.Stream:
		d.fault(d.at(path), path, "received needs mode stream, which receives what it sent (confirmed)")
	case s.Topology.Subscriptions > 1:
		d.fault(d.later(path, "topology.subscriptions"), path, "received needs one subscription, and there are %d (confirmed)", s.Topology.Subscriptions)
	case s.Placement.Kind == placement.Split:
		d.fault(d.later(path, "placement"), path, "received needs producers and consumers in one process, and placement is split (confirmed)")
	case s.Load.InFlight > engine.MostAwaited:
		d.fault(d.later(path, "load.in_flight"), "load.in_flight", "is %d, and with load.in_flight_until: received it is at most %d", s.Load.InFlight, engine.MostAwaited)
	}
}

// excluded reports each path that is given although why rules it out.
func (d *decoder) excluded(why string, paths ...string) {
	for _, p := range paths {
		if n := d.find(p); n != nil {
			d.fault(n.At, p, "%s (leave it out)", why)
		}
	}
}

func (d *decoder) combineLoad(s *Scenario) {
	if d.planned(s) && !d.has("load.rate") {
		s.Load.Rate = 0
	}
	switch {
	case s.Load.Closed:
		d.excluded("a closed loop (rate: max) sends when a slot is free, and has no arrivals", "load.arrival")
		d.excluded("a closed loop (rate: max) has no profile", "load.profile")
		d.excluded("a closed loop (rate: max) is never full", "load.when_full")
	case s.Load.Arrival.Kind == schedule.Trace:
		d.excluded("excludes a trace, which has its own instants", "load.rate", "load.profile", "measure", "messages")
	case d.has("load.profile"):
		d.excluded("excludes load.profile, which already says how many messages come when; give load.rate to replace it", "measure", "messages")
		d.excluded("excludes load.profile, which already says how many messages come when", "load.rate")
	}
}

func (d *decoder) combineNames(s *Scenario) {
	names := s.Topology.Names
	switch {
	case !d.has("topology.names"):
		if s.Mode == engine.Consume && !d.has("consume.of") {
			d.fault(d.at("mode"), "mode", "consume needs topology.names, the destinations that already hold messages (a list of names)")
		}
		return
	case s.Mode != engine.Produce && s.Mode != engine.Consume:
		d.excluded("mode "+s.Mode.String()+" makes its own destinations, to know what is in them", "topology.names")
	case d.took("topology.destinations") && d.took("topology.names") && s.Topology.Destinations != len(names):
		d.fault(d.later("topology.destinations", "topology.names"), "topology.destinations",
			"is %d, but topology.names holds %d (leave it out)", s.Topology.Destinations, len(names))
	}
	if s.System.Start != StartNone {
		d.fault(d.at("system.start"), "system.start", "%s starts an empty system, without the destinations of topology.names (none)", s.System.Start)
	}
	d.excluded("an existing destination has its own partitions", "topology.partitions")
	d.excluded("an existing destination has its own replicas", "topology.replication")
}

// combineMode rejects what does not apply to the mode.
func (d *decoder) combineMode(s *Scenario) {
	switch s.Mode {
	case engine.Consume:
		d.excluded(fmt.Sprintf("mode consume sends nothing, and ends after %v without a delivery", engine.IdleLimit), sending.paths()...)
	case engine.Request:
		if s.Topology.Subscriptions > 1 {
			d.fault(d.at("topology.subscriptions"), "topology.subscriptions", "is %d, but in mode request each request has one answer (1)", s.Topology.Subscriptions)
		}
		if s.Load.Batch.Max > 1 {
			d.fault(d.at("load.batch"), "load.batch", "mode request sends each request by itself (1)")
		}
	}
}

// combineDriver rejects what the driver does not declare, and names it.
func (d *decoder) combineDriver(s *Scenario) {
	def := s.System.Definition
	can := def.Capabilities
	refuse := func(path, what string, has func(driver.Capabilities) bool) {
		d.fault(d.at(path), path, "driver %s has no %s (1%s)", def.Name, what, d.otherwise(s, has))
	}
	if s.Topology.Partitions > 1 && !can.Partitions {
		refuse("topology.partitions", "partitions", func(c driver.Capabilities) bool { return c.Partitions })
	}
	if s.Topology.Replication > 1 && !can.Replicas {
		refuse("topology.replication", "replicas", func(c driver.Capabilities) bool { return c.Replicas })
	}
	if s.Message.Keys.Kind != schedule.NoKeys && !can.Keys {
		d.fault(d.at("message.keys"), "message.keys", "driver %s has no keys (none%s)", def.Name,
			d.otherwise(s, func(c driver.Capabilities) bool { return c.Keys }))
	}
	if most := int64(can.MaxPayload); most > 0 && int64(s.Message.Largest()) > most {
		path := "message.size"
		if s.Message.Fitted {
			path = "message.payload"
		}
		d.fault(d.at(path), path, "%s is more than driver %s takes (up to %s)",
			driver.FormatSize(int64(s.Message.Largest())), def.Name, driver.FormatSize(most))
	}
	if !can.Consume {
		why := "driver " + def.Name + " has no consumer side"
		d.excluded(why, receiving.paths()...)
		if s.Mode != engine.Produce {
			d.fault(d.at("mode"), "mode", "%s (produce)", why)
		}
		return
	}
	if s.Mode == engine.Produce {
		d.excluded("mode produce receives nothing", receiving.paths()...)
		return
	}
	if s.Mode == engine.Backlog && !can.Retains {
		d.fault(d.at("mode"), "mode", "backlog needs a driver that keeps messages for later consumers; %s does not (%s)", def.Name, strings.Join(modes[:2], ", "))
	}
	d.combineRoom(s)
	if s.Topology.Subscriptions > 1 && !can.Subscriptions {
		refuse("topology.subscriptions", "second subscription", func(c driver.Capabilities) bool { return c.Subscriptions })
	}
	if s.Topology.Consumers > s.Topology.Destinations && !can.Competing {
		d.fault(d.at("topology.consumers"), "topology.consumers",
			"driver %s does not let consumers share a destination (up to topology.destinations, %d%s)", def.Name, s.Topology.Destinations,
			d.otherwise(s, func(c driver.Capabilities) bool { return c.Competing }))
	}
	if s.Topology.Subscriptions*s.Topology.Consumers > maxCount {
		d.fault(d.later("topology.subscriptions", "topology.consumers"), "topology.consumers",
			"times subscriptions is %d (up to %d)", s.Topology.Subscriptions*s.Topology.Consumers, maxCount)
	}
	if can.InProcess && s.Mode == engine.Consume {
		d.fault(d.at("mode"), "mode", "driver %s works inside the run, so it holds no messages to consume (%s)", def.Name, strings.Join(modes[:2], ", "))
	}
}

// otherwise suggests a value of one of the driver's options that makes has true, which the given
// options prevent, as an alternative to what is allowed; "" if there is none.
func (d *decoder) otherwise(s *Scenario, has func(driver.Capabilities) bool) string {
	def, err := d.in.Drivers.Lookup(s.System.Definition.Name)
	if err != nil {
		return ""
	}
	if n := d.forming(s, def, has); n > 0 {
		return fmt.Sprintf(", or more with --nodes %d", n)
	}
	for _, o := range driver.Options(def.New()) {
		values := o.Allowed
		if o.Type == "yes/no" {
			values = []string{"yes", "no"}
		}
		for _, v := range values {
			cfg := def.New()
			for _, given := range s.System.Options {
				_ = driver.SetOption(cfg, given.Name, given.Values...) // an invalid one is reported elsewhere
			}
			if driver.SetOption(cfg, o.Name, v) == nil && has(def.Capabilities.With(cfg)) {
				return fmt.Sprintf(", or more with --option %s=%s", o.Name, v)
			}
		}
	}
	return ""
}

// forming returns the smallest number of servers with which another recipe of the driver makes has
// true; 0 if there is none, or weir does not start a recipe of its own choice.
func (d *decoder) forming(s *Scenario, def driver.Definition, has func(driver.Capabilities) bool) int {
	if s.System.Recipe == nil || d.has("system.recipe") {
		return 0
	}
	all, _ := broker.Recipes(def) // they were readable before
	for _, r := range all {
		other := s.System
		other.Recipe = r
		for _, n := range r.Nodes {
			if broker.Forming(def, n) == r.Name && has(def.Capabilities.With(other.informed())) {
				return n
			}
		}
	}
	return 0
}

// mostCounted limits how many messages of a plan are counted, which takes 15 ms.
const mostCounted = 5_000_000

// combineRoom rejects a backlog that exceeds the system's capacity: it would fill up before the plan's
// end, and sending would then block until somebody receives.
func (d *decoder) combineRoom(s *Scenario) {
	bounded, is := s.System.Config.(driver.Bounded)
	if s.Mode != engine.Backlog || !is || len(d.faults) > 0 {
		return
	}
	holds, option := bounded.Holds()
	room := uint64(holds) * uint64(s.Topology.Destinations)
	refuse := func(sends string) {
		d.fault(d.at("mode"), "mode", "driver %s has room for %d messages until a consumer receives, and %s (messages: %d with warmup: 0s, fewer at a rate, or a larger option %s)",
			s.System.Definition.Name, room, sends, room, option)
	}
	switch {
	case s.Load.Closed && (s.Messages == 0 || s.WarmUp > 0):
		refuse("a closed loop (rate: max) sends for as long as it may")
	case s.Load.Closed:
		if s.Messages > room {
			refuse(fmt.Sprintf("%d are to be sent", s.Messages))
		}
	default:
		plan, err := schedule.New(s.Plan())
		if err != nil {
			return // reported elsewhere
		}
		n := uint64(0)
		for range plan.Due(schedule.Part{Count: 1}) {
			if n++; n > max(room, mostCounted) {
				break
			}
		}
		if n > mostCounted && n > room {
			refuse(fmt.Sprintf("more than %d are to be sent", n-1))
		} else if n > room {
			refuse(fmt.Sprintf("%d are to be sent, warm-up included", n))
		}
	}
}
