package series

import (
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/outliers"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// slowest finds the slowest messages and what happened at the time, from the files already written.
func (m *logs) slowest(raw *engine.Raw, r *result.Result) []result.Slowest {
	var course outliers.Course
	for _, s := range raw.Stalls {
		course.Add(outliers.Hiccup, s.From, s.To)
	}
	for i := range r.Faults {
		course.Fault(&r.Faults[i])
	}
	saved := &result.Saved{Dir: m.dir}
	for e, err := range saved.Events() {
		if err != nil {
			break // use what could be read
		}
		course.Event(e)
	}
	for x, err := range saved.Samples() {
		if err != nil {
			break
		}
		course.Second(&x)
	}
	var all []result.Slowest
	for _, x := range m.kept(raw) {
		if s := course.Explain(x.of, x.messages, raw.From, raw.To); s != nil {
			for i, log := range m.said[x.of] { // of the same clusters
				s.Clusters[i].Log = log
			}
			all = append(all, *s)
		}
	}
	return all
}

// kept are the slowest messages of a distribution, slowest first.
type kept struct {
	of       string
	messages []result.SlowMessage
}

// kept returns those of all distributions.
func (m *measurement) kept(raw *engine.Raw) (all []kept) {
	if m.scenario.Mode == engine.Consume {
		return nil // no latency
	}
	to := m.scenario.Topology // a stream is one producer's to one destination: see schedule.Schedule.Stream
	for _, x := range []struct {
		of   string
		kept []measure.Slow
	}{{"send", raw.Slowest.Send}, {"e2e", raw.Slowest.E2E}, {"rtt", raw.Slowest.RTT}} {
		var messages []result.SlowMessage
		for _, k := range x.kept {
			messages = append(messages, result.SlowMessage{
				NS: k.Latency(), DueNS: k.Due, StartNS: k.Start, AtNS: k.At,
				Producer: int(k.Stream) % to.Producers, Destination: int(k.Stream) % to.Destinations, Seq: k.Seq,
			})
		}
		all = append(all, kept{x.of, messages})
	}
	return all
}
