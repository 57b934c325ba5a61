package host

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/proctree"
)

// hostFiles simulates a host that has done n units of everything. Its page cache is n KiB.
func hostFiles(n int) fstest.MapFS {
	file := func(format string, v ...int) *fstest.MapFile {
		args := make([]any, len(v))
		for i := range v {
			args[i] = v[i] * n
		}
		return &fstest.MapFile{Data: fmt.Appendf(nil, format, args...)}
	}
	root := fstest.MapFS{
		"proc/stat":    file("cpu  %d %d %d %d %d %d %d %d 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 5 6\nctxt %d\n", 100, 1, 50, 700, 20, 3, 2, 9, 1234),
		"proc/vmstat":  file("nr_free_pages 12\npgmajfault %d\n", 4),
		"proc/meminfo": file("MemTotal: 4096 kB\nCached: %d kB\nSwapCached: 7 kB\nDirty: %d kB\n", 10, 3),
		"proc/net/dev": file("Inter-| Receive | Transmit\n face |bytes\n    lo: %d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n  eth0:%d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n  wlan0: %d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n",
			77, 77, 1000, 2000, 10, 20),
		"proc/diskstats": file("7 0 loop0 9 9 9 9 9 9 9 9 9 9 9\n"+
			"254 0 vda %d 8 %d 7 %d 6 %d 5 0 %d 4 1 2 3 4 %d 11\n254 1 vda1 90 90 90 90 90 90 90 90 0 90 90\n"+
			"259 0 nvme0n1 %d 0 %d 0 %d 0 %d 0 0 %d 0\n253 0 dm-0 5 5 5 5 5 5 5 5 5 5 5\nodd\n", 10, 80, 20, 160, 500, 6, 1, 8, 2, 16, 100),
	}
	for _, disk := range []string{"vda", "nvme0n1", "dm-0", "loop0"} {
		root["sys/block/"+disk+"/size"] = &fstest.MapFile{}
	}
	return root
}

func TestHostUsageIsDifferenceOfReadings(t *testing.T) {
	before, after := readHost(hostFiles(2)), readHost(hostFiles(5))
	want := HostSample{
		UserS: new(3.03), SystemS: new(1.65), IdleS: new(21.0), IOWaitS: new(0.6), StealS: new(0.27),
		ContextSwitches: new(uint64(3702)), MajorFaults: new(uint64(12)),
		DiskReads: new(uint64(33)), DiskReadBytes: new(uint64(3 * 88 * 512)), DiskWrites: new(uint64(66)), DiskWrittenBytes: new(uint64(3 * 176 * 512)),
		DiskFlushes: new(uint64(18)), DiskBusyS: new(1.8),
		ReceivedBytes: new(uint64(3030)), SentBytes: new(uint64(6060)), LoopbackBytes: new(uint64(231)),
		PageCacheBytes: new(uint64(51200)), DirtyBytes: new(uint64(15360)),
	}
	if d := cmp.Diff(want, after.since(&before)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	x := Sample{Host: want}
	if a := x.absences(); len(a) > 0 {
		t.Errorf("all is told, and lacking are %v", a)
	}
}

func TestMissingHostFiguresHaveReason(t *testing.T) {
	old := hostFiles(2)
	old["proc/diskstats"] = &fstest.MapFile{Data: []byte("254 0 vda 1 2 3 4 5 6 7 8 9 10 11\n")}
	delete(old, "proc/vmstat")
	a, b := readHost(old), readHost(old)
	x := Sample{Host: b.since(&a)}
	want := []Absent{
		{"host", []string{"disk_flushes"}, "/proc/diskstats does not count flushes, which Linux does from 5.5 on"},
		{"host", []string{"major_faults"}, "/proc/vmstat does not tell"},
	}
	if d := cmp.Diff(want, x.absences()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if x.Host.DiskReads == nil || *x.Host.DiskReads != 0 {
		t.Errorf("a disk that did nothing read %v times", x.Host.DiskReads)
	}
	a, b = readHost(fstest.MapFS{}), readHost(fstest.MapFS{})
	golden.Equal(t, HostSample{}, b.since(&a), "a host that tells nothing")
	a, b = readHost(hostFiles(3)), readHost(hostFiles(2)) // counters went back
	x = Sample{Host: b.since(&a)}
	if x.Host.UserS != nil || x.Host.DiskReads != nil || x.Host.SentBytes != nil || x.Host.PageCacheBytes == nil {
		t.Errorf("after counters went back: %+v", x.Host)
	}
}

// threads adds threads to a process of a simulated host, with the number of times each blocked and was
// preempted; it waited 1 ms for a core each time.
func threads(root fstest.MapFS, pid int, all ...[3]int) {
	for _, x := range all {
		root[fmt.Sprintf("proc/%d/task/%d/status", pid, x[0])] = &fstest.MapFile{
			Data: fmt.Appendf(nil, "Name:\ta\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n", x[1], x[2]),
		}
		root[fmt.Sprintf("proc/%d/task/%d/schedstat", pid, x[0])] = &fstest.MapFile{Data: fmt.Appendf(nil, "12 %d000000 3\n", x[1]+x[2])}
	}
}

// watching makes a meter read successive states of a host, and returns the samples.
func watching(w Watching, states ...fstest.MapFS) (m *ServerMeter, all []Sample) {
	m = newServerMeter(pace.NewClock(), nil, w)
	for _, s := range states {
		m.root = s
		if x := m.read(true); x != nil {
			all = append(all, *x)
		}
	}
	return m, all
}

func TestMonitoredProcessIncludesChildren(t *testing.T) {
	const guard, pid, child, stranger = 10, 20, 21, 30
	state := func(own, of, parent int, start int, switches ...[3]int) fstest.MapFS {
		root := procOf(fakeProcess{pid: 1}, fakeProcess{pid: pid, parent: 1, own: own, written: 10 * own, anon: 4, start: start},
			fakeProcess{pid: child, parent: parent, own: of, written: 3, anon: 1, start: 6}, fakeProcess{pid: stranger, parent: 1, own: 900 * own, start: 7})
		threads(root, pid, switches...)
		return root
	}
	_, all := watching(Watching{Servers: []Server{{Name: "pid 20 (broker)", Pid: pid, Watched: true}}},
		state(100, 10, pid, 5, [3]int{20, 50, 5}),
		state(120, 14, pid, 5, [3]int{20, 57, 6}, [3]int{22, 3, 1}),
		state(130, 14, 1, 5, [3]int{20, 58, 6}), // its child is orphaned, a thread has ended
		state(900, 14, 1, 80),                   // another process has reused the pid
	)
	want := []ProcessSample{
		{
			Name: "pid 20 (broker)", Processes: 2, UserS: new(0.12), SystemS: new(0.12), VoluntarySwitches: new(uint64(10)), InvoluntarySwitches: new(uint64(2)),
			WaitedS: new(0.012), MajorFaults: new(uint64(0)), ReadBytes: new(uint64(0)), WrittenBytes: new(uint64(200)), ReadCalls: new(uint64(0)), WriteCalls: new(uint64(0)), RSSBytes: new(uint64(5 << 10)),
		},
		{
			Name: "pid 20 (broker)", Processes: 1, UserS: new(0.0), SystemS: new(0.0), VoluntarySwitches: new(uint64(1)), InvoluntarySwitches: new(uint64(0)),
			WaitedS: new(0.001), MajorFaults: new(uint64(0)), ReadBytes: new(uint64(0)), WrittenBytes: new(uint64(97)), ReadCalls: new(uint64(0)), WriteCalls: new(uint64(0)), RSSBytes: new(uint64(5 << 10)),
		},
	}
	var got []ProcessSample
	for _, x := range all {
		got = append(got, x.Processes[1])
	}
	if d := cmp.Diff(want, got[:2], cmpopts.IgnoreFields(ProcessSample{}, "Pids")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if p := got[2]; p.Processes != 0 || p.UserS != nil {
		t.Errorf("another process is taken for it: %+v", p)
	}
	for _, x := range all {
		if x.Processes[0].Name != ProcessWeir || len(x.Processes) != 2 {
			t.Errorf("processes: %+v", x.Processes)
		}
	}
}

func TestProcessesBeyondTheBoundAreCounted(t *testing.T) {
	all := []fakeProcess{{pid: 1}, {pid: 20, parent: 1, anon: 1, start: 1}}
	for i := range mostFollowed + 6 {
		all = append(all, fakeProcess{pid: 1000 + i, parent: 20, own: 100, start: 2})
	}
	_, samples := watching(Watching{Servers: []Server{{Name: "s", Pid: 20, Watched: true}}}, procOf(all...), procOf(all...))
	if x := samples[0]; x.Beyond != 7 || x.Processes[1].Processes != mostFollowed {
		t.Errorf("%d are read, and %d beyond", x.Processes[1].Processes, x.Beyond)
	}
}

func TestTooManyThreadsOmitContextSwitches(t *testing.T) {
	root := procOf(fakeProcess{pid: 1}, fakeProcess{pid: 20, parent: 1, anon: 1, start: 1})
	for i := range mostThreads {
		threads(root, 20, [3]int{100 + i, 1, 1})
	}
	_, samples := watching(Watching{Servers: []Server{{Name: "s", Pid: 20, Watched: true}}}, root, root)
	if p := samples[0].Processes[1]; p.VoluntarySwitches == nil || *p.VoluntarySwitches != 0 {
		t.Errorf("with %d threads: %+v", mostThreads, p)
	}
	threads(root, 20, [3]int{99, 1, 1})
	_, samples = watching(Watching{Servers: []Server{{Name: "s", Pid: 20, Watched: true}}}, root, root)
	if p := samples[0].Processes[1]; p.VoluntarySwitches != nil || !strings.Contains(fmt.Sprint(samples[0].Absent), "too many threads") {
		t.Errorf("with one more: %+v, %v", p, samples[0].Absent)
	}
}

func TestServerNetworkNamespaceIsDistinguished(t *testing.T) {
	state := func(received, sent int) fstest.MapFS {
		root := procOf(fakeProcess{pid: 1}, fakeProcess{pid: 20, parent: 1, anon: 1, start: 1}, fakeProcess{pid: 21, parent: 1, anon: 1, start: 1})
		for at, to := range map[string]string{"self": "net:[1]", "20": "net:[2]", "21": "net:[1]"} {
			root["proc/"+at+"/ns/net"] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink}
		}
		root["proc/20/net/dev"] = &fstest.MapFile{Data: fmt.Appendf(nil, "lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\nveth0: %d 0 0 0 0 0 0 0 %d 0 0 0 0 0 0 0\n", received, sent)}
		return root
	}
	_, all := watching(Watching{Servers: []Server{{Name: "there", Pid: 20, Watched: true}, {Name: "here", Pid: 21, Watched: true}}},
		state(100, 1000), state(130, 1500), state(10, 20)) // a different interface now
	there, here := all[0].Then(all[1]).Processes[1], all[0].Processes[2]
	if there.ReceivedBytes == nil || *there.ReceivedBytes != 40 || *there.SentBytes != 520 {
		t.Errorf("in its own: %+v", there)
	}
	if here.ReceivedBytes != nil {
		t.Errorf("in weir's: %+v", here)
	}
}

func TestUnmonitorableProcessIsRejected(t *testing.T) {
	self := os.Getpid()
	root := procOf(fakeProcess{pid: 20, parent: 1}, fakeProcess{pid: self, parent: 1})
	root["proc/20/comm"] = &fstest.MapFile{Data: []byte("redis\x1bserver\n")}
	root["proc/30/stat"] = &fstest.MapFile{Data: []byte("30 (gone) Z 1 0")}
	for pid, says := range map[int]string{20: "", 30: "no process has the number 30", 40: "no process has the number 40", self: "is weir itself"} {
		x, err := watch(root, pid)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%d: %v; want %q", pid, err, says)
		}
		if err == nil && (x.Name != "pid 20 (redis?server)" || !x.Watched) {
			t.Errorf("%+v", x)
		}
	}
	if _, err := watch(fstest.MapFS{}, 20); err == nil || !strings.Contains(err.Error(), "does not tell of processes") {
		t.Errorf("without /proc: %v", err)
	}
}

// TestMeterSamplesThisHost reads the real /proc.
func TestMeterSamplesThisHost(t *testing.T) {
	if _, ok := proctree.One(proctree.Host(), os.Getpid()); !ok {
		needs.Host(t, "proc", "no process in /proc")
	}
	heard := make(chan Sample, 16)
	m := StartServerMeter(pace.NewClock(), Watching{Servers: []Server{{Name: "parent", Pid: os.Getppid(), Watched: true}}, Hear: func(x Sample) { heard <- x }})
	m.Mark()
	x := <-heard
	m.Stop()
	if x.ToNS <= x.FromNS || x.Host.UserS == nil || x.Host.ContextSwitches == nil || len(x.Processes) < 2 || x.Processes[0].UserS == nil || x.Processes[1].Processes < 1 {
		t.Errorf("%+v", x)
	}
}

func FuzzProc(f *testing.F) {
	for name, file := range hostFiles(3) {
		if strings.HasPrefix(name, "proc/") {
			f.Add(string(file.Data))
		}
	}
	f.Add("voluntary_ctxt_switches:\t18446744073709551616\nnonvoluntary_ctxt_switches: -1\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := &fstest.MapFile{Data: []byte(text)}
		root := fstest.MapFS{}
		for _, name := range []string{"stat", "vmstat", "meminfo", "net/dev", "diskstats", "7/task/7/status", "7/io", "7/status", "7/stat"} {
			root["proc/"+name] = file
		}
		for _, disk := range []string{"vda", "nvme0n1"} {
			root["sys/block/"+disk+"/size"] = &fstest.MapFile{}
		}
		none, h := hostCounters{}, readHost(root)
		none.disks = readDisks("254 0 vda 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", func(string) bool { return true })
		x := Sample{Host: h.since(&none)}
		if !x.Finite() {
			t.Fatalf("figures that cannot be: %+v", x.Host)
		}
		_, samples := watching(Watching{Servers: []Server{{Name: "s", Pid: 7, Watched: true}}}, procOf(fakeProcess{pid: 7, parent: 1}), root)
		for _, s := range samples {
			if !s.Finite() {
				t.Fatalf("figures that cannot be: %+v", s)
			}
		}
	})
}

// BenchmarkReading measures a reading of this host, with the test process's parent as a server.
func BenchmarkReading(b *testing.B) {
	m := newServerMeter(pace.NewClock(), proctree.Host(), Watching{Servers: []Server{{Name: "s", Pid: os.Getppid(), Watched: true}}})
	m.read(true)
	b.ReportAllocs()
	before := readProcess().cpu()
	for b.Loop() {
		m.read(false)
	}
	b.ReportMetric(float64(*readProcess().cpu().since(before))/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(len(m.threads)), "threads")
	b.ReportMetric(float64(len(m.known)), "processes")
}
