package host

import (
	"math"
	"slices"
)

// A Sample is what happened on a host between two readings, about a second apart, or
// between many. A nil figure, absent from JSON, is one that the host did not tell:
// Absent says why.
type Sample struct {
	FromNS    int64           `json:"from_ns"`         // of the earlier reading
	ToNS      int64           `json:"to_ns"`           // of the later one
	Agent     string          `json:"agent,omitempty"` // of a fleet: the host is that of this agent; absent: the one on which weir was started
	Host      HostSample      `json:"host"`
	Processes []ProcessSample `json:"processes"`        // weir's own first, then the system's
	Beyond    int             `json:"beyond,omitempty"` // processes of the system that were not read, because there were too many
	Absent    []Absent        `json:"absent,omitempty"` // figures that the host does not tell; in a log only where that is not as in the line before
}

// A HostSample is of all that the host does. Counts and times are what was added.
type HostSample struct {
	// Of all cores together, in seconds of one core. The kernel counts in ticks of 10 ms.
	UserS   *float64 `json:"user_s,omitempty"`   // with nice
	SystemS *float64 `json:"system_s,omitempty"` // with interrupts
	IdleS   *float64 `json:"idle_s,omitempty"`
	IOWaitS *float64 `json:"iowait_s,omitempty"` // idle while a disk had something to do
	StealS  *float64 `json:"steal_s,omitempty"`  // ready to run while the hypervisor ran others

	ContextSwitches *uint64 `json:"context_switches,omitempty"`
	MajorFaults     *uint64 `json:"major_faults,omitempty"` // pages that had to come from a disk

	// Of all disks together, as the kernel sends requests to them.
	DiskReads        *uint64  `json:"disk_reads,omitempty"` // operations
	DiskReadBytes    *uint64  `json:"disk_read_bytes,omitempty"`
	DiskWrites       *uint64  `json:"disk_writes,omitempty"` // operations
	DiskWrittenBytes *uint64  `json:"disk_written_bytes,omitempty"`
	DiskFlushes      *uint64  `json:"disk_flushes,omitempty"`
	DiskBusyS        *float64 `json:"disk_busy_s,omitempty"` // some request was under way; disks add up

	// Of the network namespace that weir is in.
	ReceivedBytes *uint64 `json:"received_bytes,omitempty"` // of all interfaces but loopback
	SentBytes     *uint64 `json:"sent_bytes,omitempty"`
	LoopbackBytes *uint64 `json:"loopback_bytes,omitempty"` // sent over loopback, which are the same that it received

	// At the later reading.
	PageCacheBytes *uint64 `json:"page_cache_bytes,omitempty"` // files that the kernel has in memory
	DirtyBytes     *uint64 `json:"dirty_bytes,omitempty"`      // of these what is still to be written to a disk
}

// A ProcessSample is of a process with all that stem from it. Without Processes no
// figure is there.
type ProcessSample struct {
	Name      string `json:"name"`              // ProcessWeir; server-2; "pid 123 (redis-server)": one that weir was told to watch; other: what stems from none of them
	Node      int    `json:"node,omitempty"`    // of the system, 1 and up
	Processes int    `json:"processes"`         // at the later reading
	Pids      []int  `json:"-"`                 // these, its own first
	Stopped   int    `json:"stopped,omitempty"` // processes that a signal (SIGSTOP) had stopped, the most of both readings

	UserS               *float64 `json:"user_s,omitempty"`
	SystemS             *float64 `json:"system_s,omitempty"`
	VoluntarySwitches   *uint64  `json:"voluntary_switches,omitempty"`   // its threads waited
	InvoluntarySwitches *uint64  `json:"involuntary_switches,omitempty"` // its threads were pushed off a core
	MajorFaults         *uint64  `json:"major_faults,omitempty"`
	ReadBytes           *uint64  `json:"read_bytes,omitempty"`    // from disks
	WrittenBytes        *uint64  `json:"written_bytes,omitempty"` // to disks: counted when pages become dirty
	ReadCalls           *uint64  `json:"read_calls,omitempty"`    // of read(2) and its kin, for files and some sockets
	WriteCalls          *uint64  `json:"write_calls,omitempty"`
	ReceivedBytes       *uint64  `json:"received_bytes,omitempty"` // of its network namespace without loopback, where that is not weir's
	SentBytes           *uint64  `json:"sent_bytes,omitempty"`

	RSSBytes  *uint64 `json:"rss_bytes,omitempty"`  // resident memory, the most that a reading found
	DiskBytes *uint64 `json:"disk_bytes,omitempty"` // that its folder took at the end
}

// ProcessWeir is the name of the process that reads, in a Sample.
const ProcessWeir = "weir"

// An Absent says of figures why they are not there.
type Absent struct {
	Of      string   `json:"of"` // "host", or the name of a process
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

func (p *ProcessSample) times() []**float64 { return []**float64{&p.UserS, &p.SystemS} }

// Then returns what happened in s and in next, which comes after it. A figure that one
// of them lacks is not known of both together. Both stay as they are.
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

// then is Then of one process. While no process was there, it used nothing.
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

// empty reports whether it has no figure because there was no process.
func (p *ProcessSample) empty() bool {
	return p.Processes == 0 && p.UserS == nil && p.SystemS == nil && !slices.ContainsFunc(p.counts(), func(n **uint64) bool { return *n != nil })
}

// addAll adds figures to others. What either lacks is lacking in the sum.
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

// addTimes keeps to whole nanoseconds: 0.1 and 0.2 are 0.3.
func addTimes(a, b float64) float64 { return math.Round((a+b)*1e9) / 1e9 }

// Cores is how many cores were used on average; nil where that is not known.
func (s *Sample) Cores(p *ProcessSample) *float64 {
	if p.UserS == nil || p.SystemS == nil || s.ToNS <= s.FromNS {
		return nil
	}
	return new((*p.UserS + *p.SystemS) * 1e9 / float64(s.ToNS-s.FromNS))
}

// mostSamples bounds what a Series keeps: some 6 MB with ten processes.
const mostSamples = 4096

// A Series is the samples of one host in the order of time, in bounded memory: when
// there are too many, each two become one. One goroutine at a time may use it.
type Series struct{ samples []Sample }

// Add adds what comes after all others.
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

// All returns the samples, which are few. They are not to be changed.
func (s *Series) All() []Sample { return s.samples }

// Between returns what happened between the readings nearest to two instants. Nil:
// these are the same.
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

// Take returns the first samples that ended after an instant, at most so many with so many
// processes together, but one at least. It forgets those that ended until then.
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

// Shift returns s with its instants moved by so many nanoseconds.
func (s Sample) Shift(by int64) Sample {
	s.FromNS, s.ToNS = s.FromNS+by, s.ToNS+by
	return s
}

// Finite reports whether all its figures can be added up.
func (s *Sample) Finite() bool {
	times := s.Host.times()
	for i := range s.Processes {
		times = append(times, s.Processes[i].times()...)
	}
	return !slices.ContainsFunc(times, func(t **float64) bool { return *t != nil && !(**t >= 0 && **t < math.MaxInt64) })
}
