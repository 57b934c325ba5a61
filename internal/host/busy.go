package host

import (
	"cmp"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits on looking at other processes.
const (
	mostProcesses = 8192 // with more, no process is looked at
	mostBusiest   = 3    // how many are named
	leastBusy     = 0.02 // cores; from here on a process counts towards its program
)

// use is the usage of processor and swap since boot.
type use struct {
	at              time.Time
	jiffies         jiffies
	swapIn, swapOut counter // pages
	processes       map[string]processUse
}

func readUse(root fs.FS) use {
	u := use{at: time.Now(), jiffies: readJiffies(root), processes: readProcesses(root)}
	u.swapIn, u.swapOut = readSwap(root)
	return u
}

// observeUse compares the usage at two instants.
func (o *observed) observeUse(before, after use, now fs.FS) {
	if j := after.jiffies; j.ok {
		o.stealBoot = new(float64(j.steal) / float64(j.total))
	}
	span := after.at.Sub(before.at)
	busy, steal := after.jiffies.since(before.jiffies, span)
	o.stealNow = steal
	if f := strings.Fields(text(now, "proc/loadavg")); len(f) > 0 {
		if l, err := strconv.ParseFloat(f[0], 64); err == nil {
			o.load = &l
		}
	}
	cpus := after.jiffies.cores
	if busy == nil || cpus == 0 {
		return
	}
	ticks := after.jiffies.passed(before.jiffies, span) / float64(cpus) // of one core
	self, _, _ := strings.Cut(text(now, "proc/self/stat"), " ")
	others := *busy
	for pid, p := range after.processes {
		old, ok := before.processes[pid]
		if !ok || p.ticks < old.ticks {
			continue
		}
		cores := float64(p.ticks-old.ticks) / ticks
		if pid == self {
			others = max(0, others-cores/float64(cpus))
		} else if cores >= leastBusy {
			i := slices.IndexFunc(o.busiest, func(b busyProgram) bool { return b.name == p.name })
			if i < 0 {
				i, o.busiest = len(o.busiest), append(o.busiest, busyProgram{name: p.name})
			}
			o.busiest[i].processes++
			o.busiest[i].cores += cores
		}
	}
	o.othersBusy = &others
	slices.SortFunc(o.busiest, func(a, b busyProgram) int { return cmp.Or(cmp.Compare(b.cores, a.cores), cmp.Compare(a.name, b.name)) })
	o.busiest = o.busiest[:min(len(o.busiest), mostBusiest)]
}

// processors counts the "cpuN ..." lines of /proc/stat.
func processors(stat string) int {
	n := 0
	for line := range strings.Lines(stat) {
		if rest, ok := strings.CutPrefix(line, "cpu"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			n++
		}
	}
	return n
}

// A processUse is a process's processor use since it started.
type processUse struct {
	name  string
	ticks uint64
}

// readProcesses reads every process's use, by pid.
func readProcesses(root fs.FS) map[string]processUse {
	entries, err := fs.ReadDir(root, "proc")
	if err != nil || len(entries) > mostProcesses {
		return nil
	}
	all := map[string]processUse{}
	for _, e := range entries {
		if n := e.Name(); n[0] >= '0' && n[0] <= '9' {
			if u, ok := readProcessUse(text(root, "proc/"+n+"/stat")); ok {
				all[n] = u
			}
		}
	}
	return all
}

// readProcessUse parses "123 (a name) S 1 ... utime stime ...", see proc_pid_stat(5). The name may
// contain any characters, including parentheses.
func readProcessUse(stat string) (processUse, bool) {
	const utime, stime = 11, 12 // counted after the name's closing parenthesis
	left, right := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if left < 0 || right < left {
		return processUse{}, false
	}
	f := strings.Fields(stat[right+1:])
	if len(f) <= stime {
		return processUse{}, false
	}
	user, err1 := strconv.ParseUint(f[utime], 10, 64)
	system, err2 := strconv.ParseUint(f[stime], 10, 64)
	return processUse{printable(stat[left+1 : right]), user + system}, err1 == nil && err2 == nil
}

// printable removes control characters that would affect a terminal from a process name.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
