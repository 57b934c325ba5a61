package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/proctree"
)

// A fakeProcess is a process in a simulated /proc. Times are in ticks.
type fakeProcess struct {
	pid, parent, start int
	own, children      int // processor time
	written            int // -1: not reported
	anon, shared       int // kB; both 0: the process has ended
}

func procOf(all ...fakeProcess) fstest.MapFS {
	root := fstest.MapFS{}
	for _, p := range all {
		at := fmt.Sprintf("proc/%d/", p.pid)
		root[at+"stat"] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"%d (a) b) S %d 0 0 0 0 0 0 0 0 0 %d %d %d %d 0 0 0 0 %d", p.pid, p.parent, p.own/2, p.own-p.own/2, p.children/2, p.children-p.children/2, p.start)}
		if p.written >= 0 {
			root[at+"io"] = &fstest.MapFile{Data: fmt.Appendf(nil, "rchar: 9\nread_bytes: 1\nwrite_bytes: %d\ncancelled_write_bytes: 5\n", p.written)}
		}
		if p.anon+p.shared > 0 {
			root[at+"status"] = &fstest.MapFile{Data: fmt.Appendf(nil, "Name:\ta\nRssAnon:\t%8d kB\nRssFile:\t%8d kB\nRssShmem:\t%8d kB\n", p.anon, p.shared, 0)}
		}
	}
	return root
}

// reads makes a meter read successive states of the host, as whole readings if whole is set, and
// returns the instants.
func reads(m *ServerMeter, whole bool, states ...fstest.MapFS) []int64 {
	var at []int64
	for i, s := range states {
		m.root = s
		m.read(whole || i == 0)
		at = append(at, m.last.at)
		time.Sleep(time.Millisecond) // so that instants differ
	}
	return at
}

// formatted formats a usage in ticks and bytes; -1 for unreported values.
func formatted(u ServerUsage) string {
	n := func(v *uint64) int64 {
		if v == nil {
			return -1
		}
		return int64(*v)
	}
	ticks := -1.0
	if u.CPUSeconds != nil {
		ticks = *u.CPUSeconds * ticksPerSecond
	}
	return fmt.Sprintf("%s %d: %.0f ticks, %d written, %d KiB, %v", u.Name, u.Node, ticks, n(u.WrittenBytes), n(u.RSSMaxBytes)/1024, u.Pids)
}

func TestServerUsage(t *testing.T) {
	const guard, weir, one, two = 10, 11, 20, 30
	base := []fakeProcess{
		{pid: 1, own: 5000},
		{pid: guard, parent: 1, own: 1000, start: 1},
		{pid: weir, parent: guard, own: 1000, start: 1},
		{pid: 99, parent: 1, own: 7000, start: 1},
	}
	with := func(more ...fakeProcess) fstest.MapFS {
		return procOf(append(append([]fakeProcess{}, base...), more...)...)
	}
	for _, c := range []struct {
		name   string
		states []fstest.MapFS
		last   bool // a final whole reading
		want   []string
	}{
		{"two, one of them with a child", []fstest.MapFS{
			with(fakeProcess{pid: one, parent: weir, own: 100, written: 10, anon: 1, shared: 2, start: 5}, fakeProcess{pid: two, parent: weir, own: 50, anon: 8, start: 5}, fakeProcess{pid: 31, parent: two, own: 1, anon: 4, shared: 3, start: 6}),
			with(fakeProcess{pid: one, parent: weir, own: 130, written: 25, anon: 9, shared: 2, start: 5}, fakeProcess{pid: two, parent: weir, own: 52, anon: 8, start: 5}, fakeProcess{pid: 31, parent: two, own: 11, anon: 4, shared: 3, start: 6}),
			with(fakeProcess{pid: one, parent: weir, own: 140, written: 26, anon: 1, shared: 2, start: 5}, fakeProcess{pid: two, parent: weir, own: 52, anon: 8, start: 5}, fakeProcess{pid: 31, parent: two, own: 11, anon: 4, shared: 3, start: 6}),
		}, false, []string{"server-1 1: 40 ticks, 16 written, 11 KiB, [20]", "server-2 2: 12 ticks, 0 written, 15 KiB, [30 31]"}},

		{"children that end are their parents'", []fstest.MapFS{
			with(fakeProcess{pid: one, parent: weir, own: 100, anon: 1, start: 5}, fakeProcess{pid: 21, parent: one, own: 30, written: 7, anon: 1, start: 6}),
			with(fakeProcess{pid: one, parent: weir, own: 100, children: 40, written: 9, anon: 1, start: 5}), // 21 lived on for 10, and was reaped
			with(fakeProcess{pid: one, parent: weir, own: 100, children: 45, written: 9, anon: 1, start: 5}), // another came and went
		}, false, []string{"server-1 1: 15 ticks, 2 written, 2 KiB, [20]", "server-2 2: -1 ticks, -1 written, 0 KiB, []"}},

		{"one that ends while it is read counts once", []fstest.MapFS{
			with(fakeProcess{pid: one, parent: weir, own: 100, anon: 1, start: 5}, fakeProcess{pid: 21, parent: one, own: 30, anon: 1, start: 6}),
			with(fakeProcess{pid: one, parent: weir, own: 101, anon: 1, start: 5}),
			with(fakeProcess{pid: one, parent: weir, own: 102, children: 30, anon: 1, start: 5}),
		}, false, []string{"server-1 1: 2 ticks, 0 written, 2 KiB, [20]", "server-2 2: -1 ticks, -1 written, 0 KiB, []"}},

		{"what nobody inherits holds nothing up", []fstest.MapFS{
			with(fakeProcess{pid: one, parent: weir, own: 100, anon: 1, start: 5}, fakeProcess{pid: 21, parent: one, own: 500, anon: 1, start: 6}),
			with(fakeProcess{pid: one, parent: weir, own: 110, anon: 1, start: 5}),
			with(fakeProcess{pid: one, parent: weir, own: 120, anon: 1, start: 5}),
			with(fakeProcess{pid: one, parent: weir, own: 150, anon: 1, start: 5}),
		}, false, []string{"server-1 1: 30 ticks, 0 written, 2 KiB, [20]", "server-2 2: -1 ticks, -1 written, 0 KiB, []"}},

		{"a server that dies keeps what it used", []fstest.MapFS{
			with(fakeProcess{pid: one, parent: weir, own: 100, anon: 1, start: 5}),
			with(fakeProcess{pid: one, parent: weir, own: 160, anon: 3, start: 5}),
			with(),
			with(),
		}, false, []string{"server-1 1: 60 ticks, 0 written, 3 KiB, []", "server-2 2: -1 ticks, -1 written, 0 KiB, []"}},

		{"a number that another process has now is not the server", []fstest.MapFS{
			with(fakeProcess{pid: one, parent: weir, own: 100, anon: 1, start: 5}, fakeProcess{pid: 21, parent: one, own: 5, anon: 1, start: 6}),
			with(fakeProcess{pid: one, parent: weir, own: 110, anon: 1, start: 5}, fakeProcess{pid: 21, parent: 1, own: 9000, anon: 900, start: 60}),
		}, false, []string{"server-1 1: 5 ticks, 0 written, 2 KiB, [20]", "server-2 2: -1 ticks, -1 written, 0 KiB, []"}},

		{"a daemon stays its server's, another is nobody's", []fstest.MapFS{
			with(fakeProcess{pid: one, parent: weir, own: 100, anon: 1, start: 5}, fakeProcess{pid: 21, parent: one, own: 5, anon: 1, start: 6}),
			with(fakeProcess{pid: one, parent: weir, own: 100, anon: 1, start: 5}, fakeProcess{pid: 21, parent: guard, own: 9, anon: 1, start: 6}, fakeProcess{pid: 40, parent: guard, own: 3, anon: 2, start: 7}),
			with(fakeProcess{pid: one, parent: weir, own: 100, anon: 1, start: 5}, fakeProcess{pid: 21, parent: guard, own: 9, anon: 1, start: 6}, fakeProcess{pid: 40, parent: guard, own: 5, anon: 2, start: 7}),
		}, true, []string{"server-1 1: 4 ticks, 0 written, 2 KiB, [20 21]", "server-2 2: -1 ticks, -1 written, 0 KiB, []", "other 0: 2 ticks, 0 written, 2 KiB, [40]"}},

		{"what is not told is absent", []fstest.MapFS{
			with(fakeProcess{pid: one, parent: weir, own: 100, written: -1, start: 5}),
			with(fakeProcess{pid: one, parent: weir, own: 101, written: -1, start: 5}),
		}, false, []string{"server-1 1: 1 ticks, -1 written, 0 KiB, [20]", "server-2 2: -1 ticks, -1 written, 0 KiB, []"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newServerMeter(pace.NewClock(), nil, Watching{Guard: guard, Own: []int{weir}, Servers: []Server{{Name: "server-1", Node: 1, Pid: one}, {Name: "server-2", Node: 2, Pid: two}}})
			at := reads(m, c.last, c.states...)
			span, used, _ := m.Between(at[0]-5, at[len(at)-1]+5)
			var got []string
			for _, u := range used {
				got = append(got, formatted(u))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if want := time.Duration(at[len(at)-1] - at[0]).Seconds(); span != want {
				t.Errorf("over %v s; want %v", span, want)
			}
		})
	}
}

func TestUsageCoversWindow(t *testing.T) {
	m := newServerMeter(pace.NewClock(), nil, Watching{Guard: 10, Servers: []Server{{Name: "s", Node: 1, Pid: 20}}})
	state := func(ticks, anon int) fstest.MapFS {
		return procOf(fakeProcess{pid: 10, parent: 1}, fakeProcess{pid: 20, parent: 10, own: ticks, anon: anon, start: 2})
	}
	at := reads(m, false, state(0, 900), state(50, 10), state(60, 30), state(61, 20), state(500, 800))
	_, used, _ := m.Between(at[1], at[3])
	if got := formatted(used[0]); got != "s 1: 11 ticks, 0 written, 30 KiB, [20]" {
		t.Error(got)
	}
	if _, used, _ := m.Between(at[1], at[1]); used != nil {
		t.Errorf("between one reading and itself: %v", used)
	}
	if _, used, _ := (*ServerMeter)(nil).Between(at[0], at[4]); used != nil {
		t.Errorf("without a meter: %v", used)
	}
}

func TestRestartedServerKeepsCounting(t *testing.T) {
	m := newServerMeter(pace.NewClock(), nil, Watching{Guard: 10, Servers: []Server{{Name: "s", Node: 1, Pid: 20}}})
	guard := fakeProcess{pid: 10, parent: 1}
	first := reads(m, true, procOf(guard, fakeProcess{pid: 20, parent: 10, own: 100, anon: 1, start: 2}), procOf(guard, fakeProcess{pid: 20, parent: 10, own: 130, anon: 1, start: 2}), procOf(guard))
	m.Restarted("s", 30)
	last := reads(m, true, procOf(guard, fakeProcess{pid: 30, parent: 10, own: 7, anon: 1, start: 9}))
	_, used, _ := m.Between(first[0], last[0])
	if got := formatted(used[0]); got != "s 1: 37 ticks, 0 written, 1 KiB, [30]" || len(used) != 1 {
		t.Error(got, len(used))
	}
}

func TestFolderBytesAreThoseOnDisk(t *testing.T) {
	dir := t.TempDir()
	if folderBytes("") != nil || folderBytes(filepath.Join(dir, "none")) != nil {
		t.Error("what is not there has a size")
	}
	before := *folderBytes(dir)
	must.Do(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	must.Do(t, os.WriteFile(filepath.Join(dir, "a", "b", "c"), make([]byte, 1<<20), 0o600))
	must.Do(t, os.Truncate(filepath.Join(dir, "a", "b", "c"), 1<<40))
	if n := *folderBytes(dir) - before; n < 1<<20 || n > 2<<20 {
		t.Errorf("1 MiB, and a hole after it, takes %d bytes", n)
	}
}

// TestBusyServersAreDetected meters a shell whose child burns CPU for a while and ends, leaving the
// shell idle.
func TestBusyServersAreDetected(t *testing.T) {
	if _, ok := proctree.One(proctree.Host(), os.Getpid()); !ok {
		needs.Host(t, "proc", "no process in /proc")
	}
	dir := t.TempDir()
	sh := exec.Command("sh", "-c", `read go; sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo done; read go`)
	in := must.Get(sh.StdinPipe())(t)
	r, w := must.Two(os.Pipe())(t)
	sh.Stdout = w
	must.Do(t, sh.Start())
	_ = w.Close()
	clock := pace.NewClock()
	m := StartServerMeter(clock, Watching{Guard: os.Getpid(), Servers: []Server{{Name: "sh", Node: 1, Pid: sh.Process.Pid, Dir: dir}}})
	from := clock.Now()
	fmt.Fprintln(in, "go")
	must.Get(r.Read(make([]byte, 8)))(t)
	m.take(true)
	burnt := clock.Now()
	m.take(true)
	idle := clock.Now()
	fmt.Fprintln(in, "go")
	must.Do(t, sh.Wait())
	_ = r.Close()
	m.take(true)
	m.Mark()
	m.Stop()
	_, busy, _ := m.Between(from, burnt)
	_, still, _ := m.Between(burnt, idle)
	if len(busy) != 1 || busy[0].CPUSeconds == nil || *busy[0].CPUSeconds <= 0 || *busy[0].Cores <= 0 || busy[0].RSSMaxBytes == nil || *busy[0].RSSMaxBytes == 0 || busy[0].DiskBytes == nil {
		t.Fatalf("while it burns: %+v", busy)
	}
	if len(still) == 1 && still[0].CPUSeconds != nil && *still[0].CPUSeconds >= *busy[0].CPUSeconds {
		t.Errorf("idle it used %v s, burning %v", *still[0].CPUSeconds, *busy[0].CPUSeconds)
	}
}
