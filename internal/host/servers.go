package host

import (
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/proctree"
)

// A Server is a process of the system that weir started, with all that stem from
// it.
type Server struct {
	Name string // "server-2"
	Node int    // 1 and up
	Pid  int
	Dir  string // what it writes is there; "" where that is not known
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
	mostServers  = 4096            // readings that are kept
	mostPids     = 64              // of one server that are named
)

// A ServerMeter reads, about once a second, what the servers of a system use of
// this host. It has one goroutine until Stop. Its methods may be called from any.
type ServerMeter struct {
	clock *pace.Clock
	root  fs.FS
	guard int
	own   map[int]bool // processes of weir's between the guard and the servers
	mark  chan struct{}
	quit  chan struct{}
	done  chan struct{}

	mu       sync.Mutex
	servers  []Server
	members  []member
	known    map[identity]int // which member a process belongs to
	readings []serverReading
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

// A member is a server as it is counted: what its tree sums up to, less base, is
// what it has used since the meter began.
type member struct {
	cpu, read, written account
	pids               []int
}

// A serverReading is one reading of all servers.
type serverReading struct {
	at  int64 // ns on the meter's clock
	use []serverUse
}

type serverUse struct {
	ticks, read, written counter
	rss                  counter // the most since the reading before
	disk                 *uint64
	pids                 []int
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

// StartServerMeter starts to read what the servers under guard use. Between the guard and
// the servers are processes of weir's own. Nil: the host does not tell.
func StartServerMeter(c *pace.Clock, guard int, own []int, servers []Server) *ServerMeter {
	m := newServerMeter(c, proctree.Host(), guard, own, servers)
	if _, ok := proctree.One(m.root, guard); !ok {
		return nil
	}
	m.take(true)
	go m.loop()
	return m
}

func newServerMeter(c *pace.Clock, root fs.FS, guard int, own []int, servers []Server) *ServerMeter {
	m := &ServerMeter{
		clock: c, root: root, guard: guard, own: map[int]bool{},
		mark: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		servers: append(slices.Clone(servers), Server{Name: OtherServers}), known: map[identity]int{},
	}
	m.members = make([]member, len(m.servers))
	m.disk = make([]*uint64, len(m.servers))
	for _, pid := range own {
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
			for _, a := range m.members[i].accounts() {
				a.anew()
			}
		}
	}
}

func (b *member) accounts() []*account { return []*account{&b.cpu, &b.read, &b.written} }

// Stop ends the reading. It is called once.
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
			return
		case <-m.mark:
			m.take(true)
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
	m.read(scan)
}

// read reads all processes that are known, after a look for new ones where it is
// time for one.
func (m *ServerMeter) read(scan bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.clock.Now()
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
	r := serverReading{at: at, use: make([]serverUse, len(m.servers))}
	for i := range m.servers {
		b, sum := &m.members[i], &sums[i]
		if len(sum.pids) > 0 || b.cpu.open { // a first sum over no process would count the first one's past
			b.cpu.take(counter{sum.ticks, true})
			b.read.take(sum.read())
			b.written.take(sum.written())
		}
		if pids := sum.named(m.servers[i].Pid); !slices.Equal(pids, b.pids) {
			b.pids = pids
		}
		r.use[i] = serverUse{
			ticks: b.cpu.now(), read: b.read.now(), written: b.written.now(), rss: sum.rss(), disk: m.disk[i], pids: b.pids,
		}
	}
	m.readings = thinned(append(m.readings, r))
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
	for _, pid := range proctree.Below(all, m.guard) { // parents first
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
		of[pid], m.known[p], stats[p] = member, member, all[pid]
	}
	return stats
}

// thinned halves readings that became too many: every second one goes, and hands
// on the most memory that it saw.
func thinned(all []serverReading) []serverReading {
	if len(all) <= mostServers {
		return all
	}
	kept := all[:1]
	for i := 2; i < len(all); i += 2 {
		r := all[i]
		for k := range r.use {
			if seen := all[i-1].use[k].rss; seen.ok && (!r.use[k].rss.ok || seen.n > r.use[k].rss.n) {
				r.use[k].rss = seen
			}
		}
		kept = append(kept, r)
	}
	return kept
}

// Between returns what each server used between the readings nearest to two
// instants of the meter's clock, and the seconds between those. Nil: there are no
// two.
func (m *ServerMeter) Between(from, to int64) (span float64, used []ServerUsage) {
	if m == nil {
		return 0, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first, last := m.nearest(from), m.nearest(to)
	if first < 0 || first >= last {
		return 0, nil
	}
	a, b := &m.readings[first], &m.readings[last]
	span = time.Duration(b.at - a.at).Seconds()
	for i, s := range m.servers {
		x, y := &a.use[i], &b.use[i]
		u := ServerUsage{
			Name: s.Name, Node: s.Node, Pids: y.pids, DiskBytes: y.disk,
			ReadBytes: y.read.grown(x.read), WrittenBytes: y.written.grown(x.written),
		}
		if ticks := y.ticks.grown(x.ticks); ticks != nil {
			u.CPUSeconds = new(float64(*ticks) / ticksPerSecond)
			u.Cores = new(*u.CPUSeconds / span)
		}
		for _, r := range m.readings[first : last+1] {
			if rss := r.use[i].rss; rss.ok && (u.RSSMaxBytes == nil || rss.n > *u.RSSMaxBytes) {
				u.RSSMaxBytes = new(rss.n)
			}
		}
		if s.Name == OtherServers && (u.CPUSeconds == nil || *u.CPUSeconds == 0 && u.RSSMaxBytes == nil) {
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

// nearest returns the index of the reading nearest to an instant, -1 for none.
func (m *ServerMeter) nearest(at int64) int {
	i, found := slices.BinarySearchFunc(m.readings, at, func(r serverReading, at int64) int { return int(max(-1, min(1, r.at-at))) })
	switch {
	case len(m.readings) == 0:
		return -1
	case found || i == 0:
		return i
	case i == len(m.readings) || at-m.readings[i-1].at <= m.readings[i].at-at:
		return i - 1
	}
	return i
}
