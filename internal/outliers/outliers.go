// Package outliers finds what the slowest messages of a run have in common: when they occurred, and what else
// happened then.
package outliers

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/result"
)

// Limits and thresholds.
const (
	mostEpisodes = 100_000                // per cause
	collecting   = 20 * time.Millisecond  // before its end, a garbage collection may slow a message
	around       = 100 * time.Millisecond // instantaneous events count this long before and after
	twice        = 2                      // times the frequency expected by chance
	steals       = 0.01                   // fraction of all cores' time
	waits        = 0.1                    // likewise
	often        = 3                      // times the median of all seconds
	leastRepeats = 5                      // clusters needed for a period
	offBeat      = 0.1                    // of the period
	seldom       = 0.05                   // probability of reporting any cause although there is none
	causes       = 16                     // number of causes examined, about
	hiccups      = 3                      // a stall takes at least 1/hiccups of the median of the slowest
)

// Collected is the engine's event of a garbage collection of weir.
const Collected = "gc"

// Hiccup is a scheduling stall: a thread that only sleeps was not woken.
const Hiccup = "hiccup"

// Causes that are judged by a host's seconds.
const (
	Flushes = "many disk flushes"
	Written = "much written to disks"
	Read    = "much read from disks"
	Faults  = "many major faults"
	Busy    = "busy servers"
	Stolen  = "processor stolen"
	Waiting = "waiting for disks"
	Gone    = "a server was gone"
	Halted  = "a server was stopped"
)

// An episode is an episode of a cause.
type episode struct{ from, to int64 }

// A Course is what happened in a run, by cause. Its zero value is empty.
type Course struct {
	episodes map[string][]episode
	seconds  map[string][]second // by the agent of the host
}

// A second is the relevant figures of a host sample, about a second.
type second struct {
	episode
	figures                        [figures]float64 // NaN if unknown
	stolen, waiting, hasNo, halted bool
}

// The figures of a second, and the names of their outliers.
const figures = 5

var figureNames = [figures]string{Flushes, Written, Read, Faults, Busy}

// Add records an episode of a cause, with instants since the epoch.
func (c *Course) Add(what string, from, to int64) {
	if c.episodes == nil {
		c.episodes = map[string][]episode{}
	}
	if all := c.episodes[what]; len(all) < mostEpisodes && to >= from {
		c.episodes[what] = append(all, episode{from, to})
	}
}

// Event records an event, except starts of phases. Faults and errors are recorded elsewhere.
func (c *Course) Event(e result.Event) {
	switch e.Kind {
	case Collected:
		from := e.TNS - int64(collecting)
		if !strings.Contains(" "+e.Text, " 1 cycles,") { // collections too frequent to be reported singly, of one second
			from = e.TNS - int64(time.Second)
		}
		c.Add(Collected, from, e.TNS)
		return
	case "phase", "decided", "injected", "guarantee", "fault", "error", Hiccup:
		return
	}
	c.Add(e.Kind, e.TNS-int64(around), e.TNS+max(e.DurationNS, int64(around)))
}

// Fault records a fault of the servers, until it was undone.
func (c *Course) Fault(f *result.Fault) {
	to := f.BeganNS + int64(around)
	if f.UndoneNS != nil {
		to = max(to, *f.UndoneNS)
	}
	c.Add("fault", f.BeganNS, to)
}

// Second records a host sample, about a second.
func (c *Course) Second(x *host.Sample) {
	if c.seconds == nil {
		c.seconds = map[string][]second{}
	}
	all := c.seconds[x.Agent]
	if len(all) >= mostEpisodes || x.ToNS <= x.FromNS {
		return
	}
	perSecond := func(n *uint64) float64 {
		if n == nil {
			return math.NaN()
		}
		return float64(*n) * 1e9 / float64(x.ToNS-x.FromNS)
	}
	h := &x.Host
	s := second{episode: episode{x.FromNS, x.ToNS}, figures: [figures]float64{
		perSecond(h.DiskFlushes), perSecond(h.DiskWrittenBytes), perSecond(h.DiskReadBytes), perSecond(h.MajorFaults), serverCores(x),
	}}
	cores := 0.0
	for _, t := range []*float64{h.UserS, h.SystemS, h.IdleS, h.IOWaitS, h.StealS} {
		if t != nil {
			cores += *t
		}
	}
	s.stolen = h.StealS != nil && *h.StealS > steals*cores
	s.waiting = h.IOWaitS != nil && *h.IOWaitS > waits*cores
	s.hasNo = slices.ContainsFunc(x.Processes, func(p host.ProcessSample) bool { return p.Processes == 0 })
	s.halted = slices.ContainsFunc(x.Processes, func(p host.ProcessSample) bool { return p.Stopped > 0 })
	c.seconds[x.Agent] = append(all, s)
}

// Explain finds what messages, slowest first, have in common. from and to bound the measured window. It
// returns nil without messages.
func (c *Course) Explain(of string, messages []result.SlowMessage, from, to int64) *result.Slowest {
	if len(messages) == 0 {
		return nil
	}
	latencies := make([]int64, len(messages))
	for i, m := range messages {
		latencies[i] = m.NS
	}
	slices.Sort(latencies)
	typical := latencies[len(latencies)/2]
	all := map[string][]episode{}
	for what, episodes := range c.episodes {
		if what == Hiccup { // a stall of a millisecond does not explain a message that took a hundred
			episodes = slices.DeleteFunc(slices.Clone(episodes), func(x episode) bool { return hiccups*(x.to-x.from) < typical })
		}
		all[what] = joined(episodes)
	}
	for _, seconds := range c.seconds {
		for what, episodes := range judged(seconds) {
			all[what] = joined(append(all[what], episodes...))
		}
	}
	s := &result.Slowest{Of: of, Messages: slices.Clone(messages), Clusters: Clusters(messages)}
	apart := bursts(s.Clusters)
	s.PeriodNS = period(s.Clusters)
	for what, episodes := range all {
		n := 0
		for i := range s.Messages {
			if m := &s.Messages[i]; meets(episodes, m.DueNS, m.AtNS) {
				m.Beside = append(m.Beside, what)
				n++
			}
		}
		if n > 0 {
			met := met(episodes, apart)
			chances := make([]float64, len(apart))
			for i, b := range apart {
				chances[i] = chance(episodes, b.to-b.from, from, to)
			}
			s.Beside = append(s.Beside, result.Beside{
				What: what, Messages: n, Episodes: met, Chance: atLeast(met, chances), ByChance: chance(episodes, typical, from, to),
			})
		}
	}
	for i := range s.Messages {
		slices.Sort(s.Messages[i].Beside)
	}
	slices.SortFunc(s.Beside, func(a, b result.Beside) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.What, b.What))
	})
	return s
}

// Significant reports whether a cause coincides with the slowest messages significantly more often than with
// others: with a third of them, twice as often as by chance, and in more of their bursts than chance would
// explain. Messages of one burst count once.
func Significant(s *result.Slowest, b result.Beside) bool {
	share := float64(b.Messages) / float64(len(s.Messages))
	return b.Episodes > 0 && b.Chance <= seldom/causes && 3*b.Messages >= len(s.Messages) && share >= twice*b.ByChance
}

// bursts merges clusters less than a second apart, since host figures are per second.
func bursts(clusters []result.SlowCluster) (all []episode) {
	for _, c := range clusters {
		if last := len(all) - 1; last >= 0 && c.FromNS-all[last].to < int64(time.Second) {
			all[last].to = max(all[last].to, c.ToNS)
			continue
		}
		all = append(all, episode{c.FromNS, c.ToNS})
	}
	return all
}

// met is how many bursts overlap joined episodes, or how many episodes overlap bursts, the smaller: several
// bursts within one long episode count once.
func met(episodes, bursts []episode) int {
	count := func(of, others []episode) (n int) {
		for _, x := range of {
			if meets(others, x.from, x.to) {
				n++
			}
		}
		return n
	}
	return min(count(bursts, episodes), count(episodes, bursts))
}

// atLeast is the probability that at least n of independent events happen.
func atLeast(n int, chances []float64) float64 {
	of := append(make([]float64, 0, len(chances)+1), 1) // probability of each number of events
	for _, p := range chances {
		of = append(of, 0)
		for k := len(of) - 1; k >= 0; k-- {
			of[k] *= 1 - p
			if k > 0 {
				of[k] += of[k-1] * p
			}
		}
	}
	sum := 0.0
	for _, x := range of[min(n, len(of)):] {
		sum += x
	}
	return sum
}

// joined sorts episodes and merges those that touch.
func joined(episodes []episode) []episode {
	episodes = slices.Clone(episodes)
	slices.SortFunc(episodes, func(a, b episode) int { return cmp.Compare(a.from, b.from) })
	var all []episode
	for _, x := range episodes {
		if last := len(all) - 1; last >= 0 && x.from <= all[last].to {
			all[last].to = max(all[last].to, x.to)
			continue
		}
		all = append(all, x)
	}
	return all
}

// meets reports whether any of joined episodes overlaps an interval.
func meets(episodes []episode, from, to int64) bool {
	i, _ := slices.BinarySearchFunc(episodes, from, func(x episode, at int64) int { return cmp.Compare(x.to, at) })
	return i < len(episodes) && episodes[i].from <= to
}

// chance is the fraction of the window's instants at which a message that takes that long, due then,
// overlaps one of joined episodes.
func chance(episodes []episode, takes, from, to int64) float64 {
	if to <= from {
		return 0
	}
	longer := make([]episode, len(episodes))
	for i, x := range episodes {
		longer[i] = episode{x.from - takes, x.to}
	}
	met := int64(0)
	for _, x := range joined(longer) {
		met += max(0, min(x.to, to)-max(x.from, from))
	}
	return float64(met) / float64(to-from)
}

// Clusters returns the times in which slow messages were in flight, in order.
func Clusters(messages []result.SlowMessage) []result.SlowCluster {
	messages = slices.Clone(messages)
	slices.SortFunc(messages, func(a, b result.SlowMessage) int { return cmp.Compare(a.DueNS, b.DueNS) })
	var all []result.SlowCluster
	for _, m := range messages {
		if last := len(all) - 1; last >= 0 && m.DueNS <= all[last].ToNS {
			all[last].ToNS = max(all[last].ToNS, m.AtNS)
			all[last].Messages++
			continue
		}
		all = append(all, result.SlowCluster{FromNS: m.DueNS, ToNS: m.AtNS, Messages: 1})
	}
	return all
}

// period is the distance between clusters if each gap is close to a multiple of the shortest; nil if there
// are too few, or no regularity.
func period(all []result.SlowCluster) *int64 {
	if len(all) < leastRepeats {
		return nil
	}
	shortest := int64(math.MaxInt64)
	for i := 1; i < len(all); i++ {
		shortest = min(shortest, all[i].FromNS-all[i-1].FromNS)
	}
	beats, g := 0.0, float64(shortest)
	for i := 1; i < len(all); i++ {
		gap := float64(all[i].FromNS - all[i-1].FromNS)
		n := math.Round(gap / g)
		if n > leastRepeats || math.Abs(gap-n*g) > offBeat*g { // with many beats any gap is close to a multiple
			return nil
		}
		beats += n
	}
	return new(int64(math.Round(float64(all[len(all)-1].FromNS-all[0].FromNS) / beats)))
}

// judged finds, by cause, the outliers among a host's seconds.
func judged(seconds []second) map[string][]episode {
	all := map[string][]episode{}
	for k, what := range figureNames {
		var values []float64
		for i := range seconds {
			if v := seconds[i].figures[k]; !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		median := values[len(values)/2]
		for i := range seconds {
			if v := seconds[i].figures[k]; v > 0 && v > often*median {
				all[what] = append(all[what], seconds[i].episode)
			}
		}
	}
	for i := range seconds {
		x := &seconds[i]
		for what, is := range map[string]bool{Stolen: x.stolen, Waiting: x.waiting, Gone: x.hasNo, Halted: x.halted} {
			if is {
				all[what] = append(all[what], x.episode)
			}
		}
	}
	return all
}

// serverCores is the number of cores that all servers used; NaN if unknown.
func serverCores(x *host.Sample) float64 {
	sum, known := 0.0, false
	for i := range x.Processes {
		p := &x.Processes[i]
		if c := x.Cores(p); p.Name != host.ProcessWeir && c != nil {
			sum, known = sum+*c, true
		}
	}
	if !known {
		return math.NaN()
	}
	return sum
}
