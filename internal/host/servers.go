package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/proctree"
)

// A Server is a process of the system with all its descendants: either weir started it, or was told to
// watch it.
type Server struct {
	Name    string // "server-2"
	Node    int    // from 1; 0: unknown
	Pid     int
	Dir     string // folder it writes to; "" if unknown
	Watched bool   // not started by weir
}

// A Watching tells a ServerMeter what to read.
type Watching struct {
	Guard   int   // ancestor of the servers that weir started; 0: none
	Own     []int // weir's own processes between the guard and the servers
	Servers []Server
	Hear    func(Sample) // receives each sample, one at a time, with instants on the meter's clock; may be nil
}

// OtherServers names the processes of the system that descend from no known server: a daemon that a
// server left behind, or a command that runs in between.
const OtherServers = "other"

const (
	serverPeriod = time.Second
	scanPeriod   = 5 * time.Second // between scans for new processes
	diskPeriod   = 2 * time.Second // between walks through the folders
	diskShare    = 100             // and at least this many times the duration of a walk
	mostPids     = 64              // pids listed for one server
	mostFollowed = 512             // processes that are read; the rest are only counted
	mostThreads  = 256             // of all these together; with more, context switches are not reported
)

// A ServerMeter reads, about once a second, what its host does, and what weir and the system's servers
// use of it. It runs one goroutine until Stop. Its methods are safe for concurrent use.
type ServerMeter struct {
	clock *pace.Clock
	root  fs.FS
	guard int
	own   map[int]bool // weir's processes between the guard and the servers
	hear  func(Sample)
	mark  chan struct{}
	quit  chan struct{}
	done  chan struct{}

	mu       sync.Mutex
	servers  []Server
	members  []member
	known    map[identity]int // member that a process belongs to
	watched  map[int]uint64   // start times of watched processes, by pid
	beyond   int              // number of processes not read
	threads  map[thread]switches
	switched bool // the host reported some context switches
	waits    bool // and some waits for a core
	crowded  bool // there were more than mostThreads
	last     *serverReading
	absent   []Absent // of the previous sample
	series   Series
	disk     []*uint64
	scanned  int64 // ns on clock; base for the next scan and walk
	walked   int64
	walk     int64 // duration of the last walk
}

// identity identifies a process even if its pid is reused.
type identity struct {
	pid   int
	start uint64
}

// A thread is one thread of a process.
type thread struct {
	of identity
	id string
}

// switches counts how often a thread blocked and was preempted, and for how long, in ns, it was ready to run
// and had no core.
type switches struct{ voluntary, involuntary, waited uint64 }

// A member is the accounting of a server: the totals of its process tree minus base are what it has
// used since the meter started.
type member struct {
	accounts       [kinds]account
	switches       switches // summed over threads, including ended ones
	received, sent growth
	pids           []int
}

// A serverReading is one reading of all servers.
type serverReading struct {
	at   int64 // ns on the meter's clock
	host hostCounters
	own  ownCounters
	use  []serverUse
}

type serverUse struct {
	counts                 [kinds]counter
	voluntary, involuntary counter
	waited                 counter // ns
	received, sent         counter
	rss                    counter
	disk                   *uint64
	pids                   []int
	processes, stopped     int
}

// A ServerUsage is what one server used between two readings. A nil field, absent from JSON, was not
// reported by the host.
type ServerUsage struct {
	Name         string   `json:"name"`                    // server-2; other: descends from no server
	Node         int      `json:"node,omitempty"`          // from 1
	Pids         []int    `json:"pids,omitempty"`          // at the end; the server's own first if it is alive
	CPUSeconds   *float64 `json:"cpu_s,omitempty"`         // user and system
	Cores        *float64 `json:"cores,omitempty"`         // on average
	WaitedS      *float64 `json:"waited_s,omitempty"`      // its threads were ready to run but had no core; threads add up
	RSSMaxBytes  *uint64  `json:"rss_max_bytes,omitempty"` // resident memory, maximum of the readings
	DiskBytes    *uint64  `json:"disk_bytes,omitempty"`    // disk usage of its folder at the end
	ReadBytes    *uint64  `json:"read_bytes,omitempty"`    // from disks
	WrittenBytes *uint64  `json:"written_bytes,omitempty"` // to disks
}

// Watch returns a Server for a pid that weir did not start. The error says why it cannot be watched.
func Watch(pid int) (Server, error) { return watch(proctree.Host(), pid) }

func watch(root fs.FS, pid int) (Server, error) {
	if _, ok := proctree.One(root, os.Getpid()); !ok {
		return Server{}, errors.New("this host does not tell of processes (a host with Linux and its /proc)")
	}
	stat, ok := proctree.One(root, pid)
	switch {
	case !ok || stat.Dead():
		return Server{}, fmt.Errorf("no process has the number %d (that of a process that runs on this host)", pid)
	case pid == os.Getpid():
		return Server{}, fmt.Errorf("process %d is weir itself, which is watched anyway (that of a server)", pid)
	}
	name := fmt.Sprintf("pid %d", pid)
	if command := printable(text(root, fmt.Sprintf("proc/%d/comm", pid))); command != "" {
		name += " (" + command + ")"
	}
	return Server{Name: name, Pid: pid, Watched: true}, nil
}

// StartServerMeter starts a meter. It returns nil if the host does not report the figures.
func StartServerMeter(c *pace.Clock, w Watching) *ServerMeter {
	m := newServerMeter(c, proctree.Host(), w)
	for _, pid := range []int{os.Getpid(), cmp.Or(w.Guard, os.Getpid())} {
		if _, ok := proctree.One(m.root, pid); !ok {
			return nil
		}
	}
	m.take(true)
	go m.loop()
	return m
}

func newServerMeter(c *pace.Clock, root fs.FS, w Watching) *ServerMeter {
	m := &ServerMeter{
		clock: c, root: root, guard: w.Guard, own: map[int]bool{}, hear: w.Hear,
		mark: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		servers: append(slices.Clone(w.Servers), Server{Name: OtherServers}), known: map[identity]int{}, watched: map[int]uint64{},
	}
	m.members = make([]member, len(m.servers))
	m.disk = make([]*uint64, len(m.servers))
	for _, pid := range w.Own {
		m.own[pid] = true
	}
	return m
}

// Mark requests a reading now. It does not block.
func (m *ServerMeter) Mark() {
	if m == nil {
		return
	}
	select {
	case m.mark <- struct{}{}:
	default: // one is pending already
	}
}

// Restarted tells the meter that the server of that name is a new process.
func (m *ServerMeter) Restarted(name string, pid int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.servers {
		if s := &m.servers[i]; s.Name == name {
			s.Pid = pid
			for k := range m.members[i].accounts {
				m.members[i].accounts[k].anew()
			}
		}
	}
}

// Stop takes a last reading and ends the meter. It must be called only once.
func (m *ServerMeter) Stop() {
	if m == nil {
		return
	}
	close(m.quit)
	<-m.done
}

func (m *ServerMeter) loop() {
	defer close(m.done)
	tick := time.NewTicker(serverPeriod)
	defer tick.Stop()
	for {
		select {
		case <-m.quit:
			m.take(true)
			return
		case <-m.mark:
			m.take(true)
			tick.Reset(serverPeriod) // the seconds of the run count from here
		case <-tick.C:
			m.take(false)
		}
	}
}

// take takes a reading. A whole reading always looks for new processes and at the disk, others only
// when due.
func (m *ServerMeter) take(whole bool) {
	now := m.clock.Now()
	m.mu.Lock()
	scan := whole || now-m.scanned >= int64(scanPeriod)
	walk := whole || now-m.walked >= max(int64(diskPeriod), diskShare*m.walk)
	servers := slices.Clone(m.servers)
	m.mu.Unlock()
	if walk {
		disk := make([]*uint64, len(servers))
		for i, s := range servers {
			disk[i] = folderBytes(s.Dir)
		}
		m.mu.Lock()
		m.disk, m.walked = disk, m.clock.Now()
		m.walk = m.walked - now
		m.mu.Unlock()
	}
	if x := m.read(scan); x != nil && m.hear != nil {
		m.hear(*x)
	}
}

// read reads the host and all known processes, after a scan for new ones if one is due. It returns
// what happened since the previous reading.
func (m *ServerMeter) read(scan bool) *Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.clock.Now()
	r := &serverReading{at: at, host: readHost(m.root), own: readOwn(m.root), use: make([]serverUse, len(m.servers))}
	var stats map[identity]proctree.Stat
	if scan {
		stats = m.scan()
		m.scanned = at
	} else {
		stats = map[identity]proctree.Stat{}
		for p := range m.known {
			if s, ok := proctree.One(m.root, p.pid); ok && s.Start == p.start {
				stats[p] = s
			}
		}
	}
	sums := make([]treeSum, len(m.servers))
	for p, s := range stats {
		sums[m.known[p]].add(m.root, s)
	}
	m.readThreads(stats)
	for i := range m.servers {
		r.use[i] = m.members[i].take(&sums[i], m.servers[i].Pid)
		r.use[i].disk = m.disk[i]
		if m.switched && !m.crowded {
			r.use[i].voluntary, r.use[i].involuntary = counter{m.members[i].switches.voluntary, true}, counter{m.members[i].switches.involuntary, true}
			r.use[i].waited = counter{m.members[i].switches.waited, m.waits}
		}
		if in, out, own := networkOf(m.root, m.servers[i].Pid); own {
			m.members[i].received.take(in)
			m.members[i].sent.take(out)
		}
		r.use[i].received, r.use[i].sent = m.members[i].received.now(), m.members[i].sent.now()
	}
	last := m.last
	if m.last = r; last == nil || at <= last.at {
		return nil
	}
	x := m.sample(last, r)
	m.series.Add(x)
	if slices.EqualFunc(x.Absent, m.absent, Absent.equal) {
		x.Absent = nil
	} else {
		m.absent = x.Absent
	}
	return &x
}

// take takes over the totals of a server's processes.
func (b *member) take(sum *treeSum, own int) serverUse {
	u := serverUse{processes: len(sum.pids), stopped: sum.stopped, rss: sum.rss()}
	for k := range b.accounts {
		if len(sum.pids) > 0 || b.accounts[cpuUser].open { // else the next total would include the past
			b.accounts[k].take(sum.count(k))
		}
		u.counts[k] = b.accounts[k].now()
	}
	if pids := sum.named(own); !slices.Equal(pids, b.pids) {
		b.pids = pids
	}
	u.pids = b.pids
	return u
}

// readThreads adds up the context switches, and the waits for a core, of the processes' threads. What a thread did between its
// last reading and its end is lost.
func (m *ServerMeter) readThreads(stats map[identity]proctree.Stat) {
	if m.crowded {
		return
	}
	now := map[thread]switches{}
	for p := range stats {
		tasks, err := fs.ReadDir(m.root, "proc/"+strconv.Itoa(p.pid)+"/task")
		if err != nil {
			continue // gone in the meantime
		}
		if m.crowded = len(now)+len(tasks) > mostThreads; m.crowded {
			m.threads = nil
			return
		}
		for _, t := range tasks {
			n, ok := threadSwitches(m.root, p.pid, t.Name())
			if !ok {
				continue
			}
			m.switched = true
			waited := threadWaited(m.root, strconv.Itoa(p.pid), t.Name())
			n.waited, m.waits = waited.n, m.waits || waited.ok
			x := thread{p, t.Name()}
			now[x] = n
			before, seen := m.threads[x]
			if seen = seen && n.voluntary >= before.voluntary && n.involuntary >= before.involuntary && n.waited >= before.waited; !seen && m.last == nil {
				continue // exclude what it did before the first reading
			}
			if !seen {
				before = switches{}
			}
			sum := &m.members[m.known[p]].switches
			sum.voluntary += n.voluntary - before.voluntary
			sum.involuntary += n.involuntary - before.involuntary
			sum.waited += n.waited - before.waited
		}
	}
	m.threads = now
}

// scan finds the processes below the guard, and the server that each belongs to: the one it descends
// from, now or when it was last seen.
func (m *ServerMeter) scan() map[identity]proctree.Stat {
	all := proctree.All(m.root)
	other := len(m.servers) - 1
	roots := map[int]int{}
	for i, s := range m.servers[:other] {
		roots[s.Pid] = i
	}
	of := map[int]int{} // pid to member
	stats := map[identity]proctree.Stat{}
	before := m.known
	m.known = map[identity]int{}
	m.beyond = 0
	for _, pid := range m.below(all) { // parents first
		if m.own[pid] {
			continue
		}
		p := identity{pid, all[pid].Start}
		member, found := roots[pid]
		if !found {
			member, found = of[all[pid].Parent]
		}
		if !found {
			member, found = before[p]
		}
		if !found {
			member = other
		}
		if of[pid] = member; len(m.known) >= mostFollowed {
			m.beyond++
			continue
		}
		m.known[p], stats[p] = member, all[pid]
	}
	return stats
}

// below returns the descendants of the guard, and the watched processes with their descendants,
// parents before children.
func (m *ServerMeter) below(all map[int]proctree.Stat) []int {
	var pids []int
	if m.guard != 0 {
		pids = proctree.Below(all, m.guard)
	}
	for _, s := range m.servers {
		stat, there := all[s.Pid]
		if !s.Watched || !there {
			continue
		}
		if start, seen := m.watched[s.Pid]; seen && start != stat.Start {
			continue // another process has reused the pid
		}
		m.watched[s.Pid] = stat.Start
		for _, pid := range append([]int{s.Pid}, proctree.Below(all, s.Pid)...) {
			if !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Between returns what each server used between the readings nearest to two instants of the meter's
// clock, the seconds between them, and what the host did. It returns nil if both are the same reading.
func (m *ServerMeter) Between(from, to int64) (span float64, used []ServerUsage, all *Sample) {
	if m == nil {
		return 0, nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if all = m.series.Between(from, to); all == nil {
		return 0, nil, nil
	}
	span, used = all.Servers()
	return span, used, all
}

// Servers returns what each server used, and the length of the sample in seconds.
func (s *Sample) Servers() (span float64, used []ServerUsage) {
	span = time.Duration(s.ToNS - s.FromNS).Seconds()
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.Name == ProcessWeir {
			continue
		}
		u := ServerUsage{
			Name: p.Name, Node: p.Node, Pids: p.Pids, Cores: s.Cores(p), WaitedS: p.WaitedS, RSSMaxBytes: p.RSSBytes,
			DiskBytes: p.DiskBytes, ReadBytes: p.ReadBytes, WrittenBytes: p.WrittenBytes,
		}
		if p.UserS != nil && p.SystemS != nil {
			u.CPUSeconds = new(addTimes(*p.UserS, *p.SystemS))
		}
		if p.Name == OtherServers && (u.CPUSeconds == nil || *u.CPUSeconds == 0 && u.RSSMaxBytes == nil) {
			continue // it did nothing
		}
		used = append(used, u)
	}
	return span, used
}

// grown returns the growth of a counter; an unknown start counts as zero.
func (c counter) grown(earlier counter) *uint64 {
	if !earlier.ok && c.ok {
		earlier = counter{0, true}
	}
	return c.since(earlier)
}
