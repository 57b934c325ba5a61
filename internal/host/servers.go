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

// A Server is a process of the system, with all that stem from it: one that weir
// started, or was told to watch.
type Server struct {
	Name    string // "server-2"
	Node    int    // 1 and up; 0: not known
	Pid     int
	Dir     string // what it writes is there; "" where that is not known
	Watched bool   // weir did not start it
}

// A Watching is what a ServerMeter shall read.
type Watching struct {
	Guard   int   // the servers that weir started stem from it; 0: there are none
	Own     []int // processes of weir's own between the guard and the servers
	Servers []Server
	Hear    func(Sample) // takes each sample, with instants on the meter's clock, one at a time; nil: nothing does
}

// OtherServers is the name of what belongs to the system and stems from none of
// the servers that are known: a daemon that one of them left behind, or a command
// that runs between them.
const OtherServers = "other"

const (
	serverPeriod = time.Second
	scanPeriod   = 5 * time.Second // from one look for new processes to the next
	diskPeriod   = 2 * time.Second // from one walk through the folders to the next
	diskShare    = 100             // and at least so many times as long as a walk took
	mostPids     = 64              // of one server that are named
	mostFollowed = 512             // processes that are read; those beyond are counted
	mostThreads  = 256             // of all these together; with more, nothing says how often they were switched
)

// A ServerMeter reads, about once a second, what its host does, and what weir and the
// servers of a system use of it. It has one goroutine until Stop. Its methods may be
// called from any.
type ServerMeter struct {
	clock *pace.Clock
	root  fs.FS
	guard int
	own   map[int]bool // processes of weir's between the guard and the servers
	hear  func(Sample)
	mark  chan struct{}
	quit  chan struct{}
	done  chan struct{}

	mu       sync.Mutex
	servers  []Server
	members  []member
	known    map[identity]int // which member a process belongs to
	watched  map[int]uint64   // when a watched process started, by its number
	beyond   int              // processes that are not read
	threads  map[thread]switches
	switched bool // the host told of some
	crowded  bool // there were more than mostThreads
	last     *serverReading
	absent   []Absent // of the sample before
	series   Series
	disk     []*uint64
	scanned  int64 // ns on clock; the next scan and walk count from it
	walked   int64
	walk     int64 // how long the last took
}

// identity names one process for good, whatever becomes of its number.
type identity struct {
	pid   int
	start uint64
}

// A thread is one of a process.
type thread struct {
	of identity
	id string
}

// switches are how often a thread gave up its core, and was pushed off one.
type switches struct{ voluntary, involuntary uint64 }

// A member is a server as it is counted: what its tree sums up to, less base, is
// what it has used since the meter began.
type member struct {
	accounts       [kinds]account
	switches       switches // added up over threads, also those that have ended
	received, sent growth
	pids           []int
}

// A serverReading is one reading of all.
type serverReading struct {
	at   int64 // ns on the meter's clock
	host hostCounters
	own  ownCounters
	use  []serverUse
}

type serverUse struct {
	counts                 [kinds]counter
	voluntary, involuntary counter
	received, sent         counter
	rss                    counter
	disk                   *uint64
	pids                   []int
	processes, stopped     int
}

// A ServerUsage is what one server used between two readings. A nil field, absent
// from JSON, is one that the host did not tell.
type ServerUsage struct {
	Name         string   `json:"name"`                    // server-2; other: what stems from none of them
	Node         int      `json:"node,omitempty"`          // 1 and up
	Pids         []int    `json:"pids,omitempty"`          // at the end; the server's own first, where it lives
	CPUSeconds   *float64 `json:"cpu_s,omitempty"`         // user and system
	Cores        *float64 `json:"cores,omitempty"`         // on average
	RSSMaxBytes  *uint64  `json:"rss_max_bytes,omitempty"` // resident memory, the most that a reading found
	DiskBytes    *uint64  `json:"disk_bytes,omitempty"`    // that its folder took at the end
	ReadBytes    *uint64  `json:"read_bytes,omitempty"`    // from disks
	WrittenBytes *uint64  `json:"written_bytes,omitempty"` // to disks
}

// Watch returns the process with a number as a server that weir did not start. The error
// says why it cannot be watched.
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

// StartServerMeter starts to read. Nil: the host does not tell.
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

// Mark has a reading taken now: an instant that counts has come. It does not
// block.
func (m *ServerMeter) Mark() {
	if m == nil {
		return
	}
	select {
	case m.mark <- struct{}{}:
	default: // one is about to be
	}
}

// Restarted says that a server of that name is another process now.
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

// Stop takes a last reading and ends. It is called once.
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
			tick.Reset(serverPeriod) // the seconds of the run count from such instants
		case <-tick.C:
			m.take(false)
		}
	}
}

// take takes a reading. Whole ones look for new processes and at the disk,
// others only where it is time to.
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

// read reads the host and all processes that are known, after a look for new ones where
// it is time for one. It returns what happened since the reading before.
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

// take takes what the processes of a server sum up to.
func (b *member) take(sum *treeSum, own int) serverUse {
	u := serverUse{processes: len(sum.pids), stopped: sum.stopped, rss: sum.rss()}
	for k := range b.accounts {
		if len(sum.pids) > 0 || b.accounts[cpuUser].open { // a first sum over no process would count the first one's past
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

// readThreads adds up how often the threads of processes were switched. What a thread
// did between the last reading of it and its end is lost.
func (m *ServerMeter) readThreads(stats map[identity]proctree.Stat) {
	if m.crowded {
		return
	}
	now := map[thread]switches{}
	for p := range stats {
		tasks, err := fs.ReadDir(m.root, "proc/"+strconv.Itoa(p.pid)+"/task")
		if err != nil {
			continue // gone meanwhile
		}
		if m.crowded = len(now)+len(tasks) > mostThreads; m.crowded {
			m.threads = nil
			return
		}
		for _, t := range tasks {
			voluntary, involuntary, ok := threadSwitches(m.root, p.pid, t.Name())
			if !ok {
				continue
			}
			m.switched = true
			x := thread{p, t.Name()}
			now[x] = switches{voluntary, involuntary}
			before, seen := m.threads[x]
			if seen = seen && voluntary >= before.voluntary && involuntary >= before.involuntary; !seen && m.last == nil {
				continue // what it did before the first reading does not count
			}
			if !seen {
				before = switches{}
			}
			sum := &m.members[m.known[p]].switches
			sum.voluntary += voluntary - before.voluntary
			sum.involuntary += involuntary - before.involuntary
		}
	}
	m.threads = now
}

// scan finds the processes below the guard, and which server each belongs to:
// that from which it stems, or from which it stemmed when it was seen before.
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

// below returns the processes that stem from the guard, and those that are watched with
// what stems from them: parents before their children.
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
			continue // another process has its number now
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

// Between returns what each server used between the readings nearest to two instants of
// the meter's clock, the seconds between those, and what the host did then. Nil:
// these are the same.
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

// Servers returns what each server used, and the seconds that a sample is of.
func (s *Sample) Servers() (span float64, used []ServerUsage) {
	span = time.Duration(s.ToNS - s.FromNS).Seconds()
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.Name == ProcessWeir {
			continue
		}
		u := ServerUsage{
			Name: p.Name, Node: p.Node, Pids: p.Pids, Cores: s.Cores(p), RSSMaxBytes: p.RSSBytes,
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

// grown is the growth of a counter that had not begun where it is not known.
func (c counter) grown(earlier counter) *uint64 {
	if !earlier.ok && c.ok {
		earlier = counter{0, true}
	}
	return c.since(earlier)
}
