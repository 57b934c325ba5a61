// Package slow says of the slowest messages of a run what they have in common: when
// they came, and what else happened then.
package slow

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/result"
)

// Bounds of what is looked at and told.
const (
	mostSpells   = 100_000                // of one cause
	collecting   = 20 * time.Millisecond  // so long before its end a collection of garbage may slow a message down
	around       = 100 * time.Millisecond // an event without a length counts so long before and after
	twice        = 2                      // so many times as often as by chance
	steals       = 0.01                   // share of all cores' time
	waits        = 0.1                    // likewise
	often        = 3                      // so many times the median of all seconds
	leastRepeats = 5                      // spells that tell a period
	offBeat      = 0.1                    // of the period
	seldom       = 0.05                   // the chance that any of the causes is told although none is one
	causes       = 16                     // that are looked at, about
	hiccups      = 3                      // a hiccup takes at least such a part of the median of the slowest
)

// Collected is a collection of weir's own garbage: an event of the engine.
const Collected = "gc"

// Hiccup is a time in which a thread that only sleeps was not woken.
const Hiccup = "hiccup"

// What is judged by the seconds of a host.
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

// A spell is a time in which something happened.
type spell struct{ from, to int64 }

// A Course is what happened in a run, by what it was. Its zero value is empty.
type Course struct {
	spells  map[string][]spell
	seconds map[string][]second // by the agent of their host
}

// A second is what counts of a host's second or so.
type second struct {
	spell
	figures                        [figures]float64 // not a number where it is not known
	stolen, waiting, hasNo, halted bool
}

// The figures of a second, and what it is called where one is unlike the others'.
const figures = 5

var figureNames = [figures]string{Flushes, Written, Read, Faults, Busy}

// Add notes that something happened from one instant to another, since the epoch.
func (c *Course) Add(what string, from, to int64) {
	if c.spells == nil {
		c.spells = map[string][]spell{}
	}
	if all := c.spells[what]; len(all) < mostSpells && to >= from {
		c.spells[what] = append(all, spell{from, to})
	}
}

// Event notes an event. What begins a phase is none. Faults and errors are told otherwise.
func (c *Course) Event(e result.Event) {
	switch e.Kind {
	case Collected:
		from := e.TNS - int64(collecting)
		if !strings.Contains(" "+e.Text, " 1 cycles,") { // of one second, so many that they were not told one by one
			from = e.TNS - int64(time.Second)
		}
		c.Add(Collected, from, e.TNS)
		return
	case "phase", "decided", "injected", "guarantee", "fault", "error", Hiccup:
		return
	}
	c.Add(e.Kind, e.TNS-int64(around), e.TNS+max(e.DurationNS, int64(around)))
}

// Fault notes what was done to servers, until it was undone.
func (c *Course) Fault(f *result.Fault) {
	to := f.BeganNS + int64(around)
	if f.UndoneNS != nil {
		to = max(to, *f.UndoneNS)
	}
	c.Add("fault", f.BeganNS, to)
}

// Second notes what a host did in a second or so.
func (c *Course) Second(x *host.Sample) {
	if c.seconds == nil {
		c.seconds = map[string][]second{}
	}
	all := c.seconds[x.Agent]
	if len(all) >= mostSpells || x.ToNS <= x.FromNS {
		return
	}
	perSecond := func(n *uint64) float64 {
		if n == nil {
			return math.NaN()
		}
		return float64(*n) * 1e9 / float64(x.ToNS-x.FromNS)
	}
	h := &x.Host
	s := second{spell: spell{x.FromNS, x.ToNS}, figures: [figures]float64{
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

// Explain tells what messages, the slowest first, have in common. from and to bound the
// measured window. It returns nil without messages.
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
	all := map[string][]spell{}
	for what, spells := range c.spells {
		if what == Hiccup { // one of a millisecond explains no message that took a hundred
			spells = slices.DeleteFunc(slices.Clone(spells), func(x spell) bool { return hiccups*(x.to-x.from) < typical })
		}
		all[what] = joined(spells)
	}
	for _, seconds := range c.seconds {
		for what, spells := range judged(seconds) {
			all[what] = joined(append(all[what], spells...))
		}
	}
	s := &result.Slowest{Of: of, Messages: slices.Clone(messages), Clusters: Clusters(messages)}
	apart := bursts(s.Clusters)
	s.PeriodNS = period(s.Clusters)
	for what, spells := range all {
		n := 0
		for i := range s.Messages {
			if m := &s.Messages[i]; meets(spells, m.DueNS, m.AtNS) {
				m.Beside = append(m.Beside, what)
				n++
			}
		}
		if n > 0 {
			met := met(spells, apart)
			chances := make([]float64, len(apart))
			for i, b := range apart {
				chances[i] = chance(spells, b.to-b.from, from, to)
			}
			s.Beside = append(s.Beside, result.Beside{
				What: what, Messages: n, Spells: met, Chance: atLeast(met, chances), ByChance: chance(spells, typical, from, to),
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

// Tells reports whether something happened beside the slowest messages clearly more often
// than beside others: beside a third of them, twice as often as by chance, and in so many of
// their spells as chance would seldom have it. Messages of one spell are one case.
func Tells(s *result.Slowest, b result.Beside) bool {
	share := float64(b.Messages) / float64(len(s.Messages))
	return b.Spells > 0 && b.Chance <= seldom/causes && 3*b.Messages >= len(s.Messages) && share >= twice*b.ByChance
}

// bursts are clusters, those that are not a second apart as one: what a host did is told by
// the second.
func bursts(clusters []result.SlowCluster) (all []spell) {
	for _, c := range clusters {
		if last := len(all) - 1; last >= 0 && c.FromNS-all[last].to < int64(time.Second) {
			all[last].to = max(all[last].to, c.ToNS)
			continue
		}
		all = append(all, spell{c.FromNS, c.ToNS})
	}
	return all
}

// met is how many bursts meet one of joined spells, and how many spells meet a burst, the
// fewer: several bursts within one long spell are one case too.
func met(spells, bursts []spell) int {
	count := func(of, others []spell) (n int) {
		for _, x := range of {
			if meets(others, x.from, x.to) {
				n++
			}
		}
		return n
	}
	return min(count(bursts, spells), count(spells, bursts))
}

// atLeast is the chance that of independent events with chances at least n happen.
func atLeast(n int, chances []float64) float64 {
	of := append(make([]float64, 0, len(chances)+1), 1) // the chance that so many happen, by their number
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

// joined are spells in the order of time, those that touch as one.
func joined(spells []spell) []spell {
	spells = slices.Clone(spells)
	slices.SortFunc(spells, func(a, b spell) int { return cmp.Compare(a.from, b.from) })
	var all []spell
	for _, x := range spells {
		if last := len(all) - 1; last >= 0 && x.from <= all[last].to {
			all[last].to = max(all[last].to, x.to)
			continue
		}
		all = append(all, x)
	}
	return all
}

// meets reports whether any of joined spells lies in some part between two instants.
func meets(spells []spell, from, to int64) bool {
	i, _ := slices.BinarySearchFunc(spells, from, func(x spell, at int64) int { return cmp.Compare(x.to, at) })
	return i < len(spells) && spells[i].from <= to
}

// chance is the share of the window's instants at which a message that takes so long, and
// is due then, meets one of joined spells.
func chance(spells []spell, takes, from, to int64) float64 {
	if to <= from {
		return 0
	}
	longer := make([]spell, len(spells))
	for i, x := range spells {
		longer[i] = spell{x.from - takes, x.to}
	}
	met := int64(0)
	for _, x := range joined(longer) {
		met += max(0, min(x.to, to)-max(x.from, from))
	}
	return float64(met) / float64(to-from)
}

// Clusters are the times in which slow messages were under way, in order.
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

// period is how far apart clusters begin, where each gap is close to a multiple of the
// shortest; nil where they are too few, or come at no beat.
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
		if n > leastRepeats || math.Abs(gap-n*g) > offBeat*g { // of many beats any gap is close to a multiple
			return nil
		}
		beats += n
	}
	return new(int64(math.Round(float64(all[len(all)-1].FromNS-all[0].FromNS) / beats)))
}

// judged are the seconds of a host in which something was unlike in most of them.
func judged(seconds []second) map[string][]spell {
	all := map[string][]spell{}
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
				all[what] = append(all[what], seconds[i].spell)
			}
		}
	}
	for i := range seconds {
		x := &seconds[i]
		for what, is := range map[string]bool{Stolen: x.stolen, Waiting: x.waiting, Gone: x.hasNo, Halted: x.halted} {
			if is {
				all[what] = append(all[what], x.spell)
			}
		}
	}
	return all
}

// serverCores is how many cores all servers used; not a number where it is not known.
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
