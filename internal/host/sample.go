package host

import (
	"math"
	"slices"
)

// A Sample is what happened on a host between two readings about a second apart, or between many
// readings. A nil figure, absent from JSON, was not reported by the host: Absent says why.
type Sample struct {
	FromNS    int64           `json:"from_ns"`         // time of the earlier reading
	ToNS      int64           `json:"to_ns"`           // time of the later reading
	Agent     string          `json:"agent,omitempty"` // the fleet's agent on this host; absent: weir's own host
	Host      HostSample      `json:"host"`
	Processes []ProcessSample `json:"processes"`        // weir's own first, then the system's
	Beyond    int             `json:"beyond,omitempty"` // processes not read: too many
	Absent    []Absent        `json:"absent,omitempty"` // figures not reported; in a log only if changed
}

// A HostSample covers the whole host. Counts and times are differences.
type HostSample struct {
	// Of all cores together, in seconds of one core. The kernel counts in ticks of 10 ms.
	UserS   *float64 `json:"user_s,omitempty"`   // with nice
	SystemS *float64 `json:"system_s,omitempty"` // with interrupts
	IdleS   *float64 `json:"idle_s,omitempty"`
	IOWaitS *float64 `json:"iowait_s,omitempty"` // idle while disk I/O was pending
	StealS  *float64 `json:"steal_s,omitempty"`  // ready to run while the hypervisor ran others

	ContextSwitches *uint64 `json:"context_switches,omitempty"`
	MajorFaults     *uint64 `json:"major_faults,omitempty"` // pages read from disk

	// For all disks together, as requests sent by the kernel.
	DiskReads        *uint64  `json:"disk_reads,omitempty"` // operations
	DiskReadBytes    *uint64  `json:"disk_read_bytes,omitempty"`
	DiskWrites       *uint64  `json:"disk_writes,omitempty"` // operations
	DiskWrittenBytes *uint64  `json:"disk_written_bytes,omitempty"`
	DiskFlushes      *uint64  `json:"disk_flushes,omitempty"`
	DiskBusyS        *float64 `json:"disk_busy_s,omitempty"` // time with a request in flight; adds up over disks

	// For weir's network namespace.
	ReceivedBytes *uint64 `json:"received_bytes,omitempty"` // of all interfaces but loopback
	SentBytes     *uint64 `json:"sent_bytes,omitempty"`
	LoopbackBytes *uint64 `json:"loopback_bytes,omitempty"` // sent over loopback, which equals the bytes received

	// At the later reading.
	PageCacheBytes *uint64 `json:"page_cache_bytes,omitempty"` // files cached in memory
	DirtyBytes     *uint64 `json:"dirty_bytes,omitempty"`      // the part not yet written to disk
}

// A ProcessSample covers a process and all its descendants. If Processes is 0, there are no figures.
type ProcessSample struct {
	Name      string `json:"name"`              // ProcessWeir, server-2, "pid 123 (redis-server)", other
	Node      int    `json:"node,omitempty"`    // of the system, from 1
	Processes int    `json:"processes"`         // at the later reading
	Pids      []int  `json:"-"`                 // pids, its own first
	Stopped   int    `json:"stopped,omitempty"` // processes stopped by SIGSTOP, maximum of the readings

	UserS               *float64 `json:"user_s,omitempty"`
	SystemS             *float64 `json:"system_s,omitempty"`
	VoluntarySwitches   *uint64  `json:"voluntary_switches,omitempty"`   // threads blocked
	InvoluntarySwitches *uint64  `json:"involuntary_switches,omitempty"` // threads were preempted
	WaitedS             *float64 `json:"waited_s,omitempty"`             // threads were ready to run but had no core; threads add up
	MajorFaults         *uint64  `json:"major_faults,omitempty"`
	ReadBytes           *uint64  `json:"read_bytes,omitempty"`    // from disks
	WrittenBytes        *uint64  `json:"written_bytes,omitempty"` // to disks: counted when pages are dirtied
	ReadCalls           *uint64  `json:"read_calls,omitempty"`    // read(2) and similar, for files and some sockets
	WriteCalls          *uint64  `json:"write_calls,omitempty"`
	ReceivedBytes       *uint64  `json:"received_bytes,omitempty"` // in its own network namespace, no loopback
	SentBytes           *uint64  `json:"sent_bytes,omitempty"`

	RSSBytes  *uint64 `json:"rss_bytes,omitempty"`  // resident memory, maximum of the readings
	DiskBytes *uint64 `json:"disk_bytes,omitempty"` // disk usage of its folder at the end
}

// ProcessWeir is the name in a Sample of the process that does the reading.
const ProcessWeir = "weir"

// An Absent says why figures are missing.
type Absent struct {
	Of      string   `json:"of"` // "host" or a process name
	Figures []string `json:"figures"`
	Why     string   `json:"why"`
}

func (h *HostSample) counts() []**uint64 {
	return []**uint64{
		&h.ContextSwitches, &h.MajorFaults, &h.DiskReads, &h.DiskReadBytes, &h.DiskWrites, &h.DiskWrittenBytes, &h.DiskFlushes,
		&h.ReceivedBytes, &h.SentBytes, &h.LoopbackBytes,
	}
}

func (h *HostSample) times() []**float64 {
	return []**float64{&h.UserS, &h.SystemS, &h.IdleS, &h.IOWaitS, &h.StealS, &h.DiskBusyS}
}

func (p *ProcessSample) counts() []**uint64 {
	return []**uint64{
		&p.VoluntarySwitches, &p.InvoluntarySwitches, &p.MajorFaults, &p.ReadBytes, &p.WrittenBytes, &p.ReadCalls, &p.WriteCalls,
		&p.ReceivedBytes, &p.SentBytes,
	}
}

func (p *ProcessSample) times() []**float64 { return []**float64{&p.UserS, &p.SystemS, &p.WaitedS} }

// Then returns the combination of s and next, which follows it. A figure missing from either is
// missing from the result. Neither is modified.
func (s Sample) Then(next Sample) Sample {
	sum := next
	sum.FromNS, sum.Beyond = s.FromNS, max(s.Beyond, next.Beyond)
	addAll(sum.Host.counts(), s.Host.counts(), addCounts)
	addAll(sum.Host.times(), s.Host.times(), addTimes)
	sum.Processes = slices.Clone(next.Processes)
	for i := range s.Processes {
		before := &s.Processes[i]
		at := slices.IndexFunc(sum.Processes, func(p ProcessSample) bool { return p.Name == before.Name })
		if at < 0 {
			sum.Processes = append(sum.Processes, *before)
			continue
		}
		sum.Processes[at] = before.then(sum.Processes[at])
	}
	sum.Absent = slices.Clone(next.Absent)
	for _, a := range s.Absent {
		if !slices.ContainsFunc(sum.Absent, func(b Absent) bool { return b.Of == a.Of && b.Why == a.Why }) {
			sum.Absent = append(sum.Absent, a)
		}
	}
	return sum
}

// then combines two samples of one process. While it has no processes, it used nothing.
func (p ProcessSample) then(next ProcessSample) ProcessSample {
	sum := next
	switch {
	case p.empty():
		return next
	case next.empty():
		sum = p
		sum.Processes, sum.Pids = next.Processes, next.Pids
		return sum
	}
	addAll(sum.counts(), p.counts(), addCounts)
	addAll(sum.times(), p.times(), addTimes)
	if sum.RSSBytes = p.RSSBytes; sum.RSSBytes == nil || next.RSSBytes != nil && *next.RSSBytes > *sum.RSSBytes {
		sum.RSSBytes = next.RSSBytes
	}
	if sum.DiskBytes == nil {
		sum.DiskBytes = p.DiskBytes
	}
	return sum
}

// empty reports whether it has no figures because no process exists.
func (p *ProcessSample) empty() bool {
	return p.Processes == 0 && p.UserS == nil && p.SystemS == nil && !slices.ContainsFunc(p.counts(), func(n **uint64) bool { return *n != nil })
}

// addAll adds figures to sums. A figure missing from either is missing from the result.
func addAll[T uint64 | float64](sums, more []**T, add func(a, b T) T) {
	for i, sum := range sums {
		switch {
		case *sum == nil:
		case *more[i] == nil:
			*sum = nil
		default:
			*sum = new(add(**sum, **more[i]))
		}
	}
}

func addCounts(a, b uint64) uint64 { return a + b }

// addTimes rounds to whole nanoseconds: 0.1 + 0.2 is 0.3.
func addTimes(a, b float64) float64 { return math.Round((a+b)*1e9) / 1e9 }

// Cores returns how many cores were used on average; nil if unknown.
func (s *Sample) Cores(p *ProcessSample) *float64 {
	if p.UserS == nil || p.SystemS == nil || s.ToNS <= s.FromNS {
		return nil
	}
	return new((*p.UserS + *p.SystemS) * 1e9 / float64(s.ToNS-s.FromNS))
}

// mostSamples limits a Series to about 6 MB with ten processes.
const mostSamples = 4096

// A Series holds the samples of one host in order of time, in bounded memory: when there are too many,
// pairs are merged. It is not safe for concurrent use.
type Series struct{ samples []Sample }

// Add appends a sample, which must be later than all others.
func (s *Series) Add(x Sample) {
	if s.samples = append(s.samples, x); len(s.samples) <= mostSamples {
		return
	}
	kept := s.samples[:0]
	for i := 0; i+1 < len(s.samples); i += 2 {
		kept = append(kept, s.samples[i].Then(s.samples[i+1]))
	}
	if len(s.samples)%2 == 1 {
		kept = append(kept, s.samples[len(s.samples)-1])
	}
	clear(s.samples[len(kept):])
	s.samples = kept
}

// All returns the samples, which must not be modified.
func (s *Series) All() []Sample { return s.samples }

// Between returns what happened between the readings nearest to two instants; nil if that is the same
// reading.
func (s *Series) Between(from, to int64) *Sample {
	var sum *Sample
	for _, x := range s.samples {
		switch middle := x.FromNS + (x.ToNS-x.FromNS)/2; {
		case middle < from || middle >= to:
		case sum == nil:
			sum = &x
		default:
			sum = new(sum.Then(x))
		}
	}
	return sum
}

// Take returns the first samples that ended after an instant, limited in number and in total
// processes, but at least one. It discards those that ended before.
func (s *Series) Take(since int64, most, processes int) []Sample {
	s.samples = slices.DeleteFunc(s.samples, func(x Sample) bool { return x.ToNS <= since })
	n := 0
	for ; n < min(most, len(s.samples)); n++ {
		if processes -= len(s.samples[n].Processes); processes < 0 && n > 0 {
			break
		}
	}
	return slices.Clone(s.samples[:n])
}

// Shift returns s with its instants moved by the given nanoseconds.
func (s Sample) Shift(by int64) Sample {
	s.FromNS, s.ToNS = s.FromNS+by, s.ToNS+by
	return s
}

// Finite reports whether all its figures are finite, so that they can be summed.
func (s *Sample) Finite() bool {
	times := s.Host.times()
	for i := range s.Processes {
		times = append(times, s.Processes[i].times()...)
	}
	return !slices.ContainsFunc(times, func(t **float64) bool { return *t != nil && !(**t >= 0 && **t < math.MaxInt64) })
}
