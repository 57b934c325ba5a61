package view

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

func TestReportShowsHostUsage(t *testing.T) {
	r := &result.Result{
		Run: result.Run{Mode: "stream", MeasureS: 10},
		Servers: &result.Servers{SpanS: 10, Processes: []host.ServerUsage{
			{Name: "s-1", Cores: new(0.5), ReadBytes: new(uint64(0)), WrittenBytes: new(uint64(200 << 20))},
			{Name: "s-2", Cores: new(0.25), ReadBytes: new(uint64(0)), WrittenBytes: new(uint64(60 << 20))},
		}},
		Throughput: result.Throughput{ReceivedPerS: new(25600.0), ReceivedBytesPerS: new(25.0 * (1 << 20)), ReceiveS: 10},
		Resources: []host.Sample{
			{ToNS: 10e9, Host: host.HostSample{
				UserS: new(6.0), SystemS: new(3.0), IdleS: new(10.0), IOWaitS: new(0.8), StealS: new(0.2), ContextSwitches: new(uint64(123_450)), MajorFaults: new(uint64(1)),
				DiskReads: new(uint64(0)), DiskReadBytes: new(uint64(0)), DiskWrites: new(uint64(410)), DiskWrittenBytes: new(uint64(31 << 20)), DiskFlushes: new(uint64(120)),
				PageCacheBytes: new(uint64(4 << 30)), DirtyBytes: new(uint64(65 << 20)), ReceivedBytes: new(uint64(10)), SentBytes: new(uint64(20)), LoopbackBytes: new(uint64(26 << 20)),
			}},
			{Agent: "broker-host", ToNS: 10e9, Host: host.HostSample{DiskReads: new(uint64(7)), DiskReadBytes: new(uint64(7 << 10))}, Beyond: 3},
		},
		Efficiency: &result.Efficiency{Messages: "confirmed", MessagesPerCPUS: new(34133.3), WrittenPerMessageByte: new(1.04), PricePerHour: new(0.96), CostPerMillion: new(0.0104)},
	}
	says := func() string {
		page := &layout.Page{}
		x := &single{Page: page, r: r}
		x.servers()
		x.hosts(false)
		x.efficiency()
		return layout.Text{}.Page(page)
	}
	want := `servers     used 0.75 cores, 260 MiB written
            disk reads 0 B while 250 MiB were delivered: served from the page cache, or from the servers' own memory
host        processor 45.0 % busy (30.0 % user, 15.0 % system), 4.0 % waiting for disks, 1.0 % stolen, 12,345/s context switches
            disks read 0 B in 0 operations, wrote 31.0 MiB in 410 operations, 120 flushes, 1 major fault, page cache 4.00 GiB at the end with 65.0 MiB to be written
            network received 10 B and sent 20 B, loopback 26.0 MiB
host        of agent broker-host: disks read 7.00 KiB in 7 operations
            3 processes of the system were not read: there are too many
efficiency  34,133 messages for each core-second of the servers; 1.04 bytes written for each byte of payload; a million messages cost 0.010 at 0.96 an hour (confirmed messages count)
`
	if d := cmp.Diff(want, says()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	r.Resources = nil
	r.Efficiency = &result.Efficiency{Messages: "confirmed", Unknown: []result.Unknown{{Figure: "messages_per_cpu_s", Why: "the reason"}}}
	if s := says(); !strings.Contains(s, "efficiency  not known: the reason\n") {
		t.Error(s)
	}
}

// TestPageCacheNamedOnlyWithEvidence changes one figure at a time.
func TestPageCacheNamedOnlyWithEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*result.Result)
		says   bool
	}{
		"as it is":               {func(*result.Result) {}, true},
		"something was read":     {func(r *result.Result) { r.Servers.Processes[0].ReadBytes = new(uint64(4096)) }, false},
		"reads are not known":    {func(r *result.Result) { r.Servers.Processes[0].ReadBytes = nil }, false},
		"nothing was written":    {func(r *result.Result) { r.Servers.Processes[0].WrittenBytes = new(uint64(0)) }, false},
		"little was delivered":   {func(r *result.Result) { r.Throughput.ReceivedBytesPerS = new(100.0) }, false},
		"deliveries not known":   {func(r *result.Result) { r.Throughput.ReceivedBytesPerS = nil }, false},
		"a backlog drains later": {func(r *result.Result) { r.Run.Mode = result.ModeBacklog }, false},
	} {
		r := &result.Result{
			Run:        result.Run{Mode: "stream", MeasureS: 10},
			Servers:    &result.Servers{Processes: []host.ServerUsage{{ReadBytes: new(uint64(0)), WrittenBytes: new(uint64(30 << 20))}}},
			Throughput: result.Throughput{ReceivedBytesPerS: new(5e6)},
		}
		c.change(r)
		if says := fromMemory(r); (says != "") != c.says {
			t.Errorf("%s: %q", name, says)
		}
	}
}

// TestPageChartsHostBelowMessages draws a run with two hosts, one of them with many
// servers.
func TestPageChartsHostBelowMessages(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString(`{"schema": "weir.host/v1"}` + "\n")
	for i := range 5 {
		from, to := i*1e9, (i+1)*1e9
		fmt.Fprintf(&b, `{"from_ns":%d,"to_ns":%d,"host":{"user_s":1.25,"system_s":0.25,"steal_s":0,"iowait_s":0,"disk_read_bytes":2048,"disk_written_bytes":0},"processes":[`+
			`{"name":"weir","processes":1,"user_s":0.5,"system_s":0.25},{"name":"server-1","processes":1,"user_s":0.1,"system_s":0.1,"rss_bytes":1048576}]}`+"\n", from, to)
		fmt.Fprintf(&b, `{"from_ns":%d,"to_ns":%d,"agent":"bk","host":{},"processes":[`, from, to)
		for k := range 5 {
			fmt.Fprintf(&b, `{"name":"s%d","processes":1,"user_s":0.25,"system_s":0.25},`, k)
		}
		b.WriteString(`{"name":"weir","processes":1}]}` + "\n")
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, result.FileHost), []byte(b.String()), 0o600))
	intervals := []result.Interval{{TS: 0, Phase: "measure", Sent: 1}, {TS: 1, Phase: "measure", Sent: 1}, {TS: 2, Phase: "measure", Sent: 1}, {TS: 3, Phase: "drain"}}
	c := must.Get(NewCourse(new(result.Result), intervals, dir))(t)
	page := &layout.Page{}
	(&single{Page: page, Entry: Entry{Course: c}, r: &result.Result{}, o: Options{drawn: "c-", lone: true}}).hostsOverTime()
	var got strings.Builder
	must.Do(t, browser("x").Write(&got, page))
	mentions(t, got.String(),
		"processor: the host that weir was started on over time", "processor: the host of agent bk over time", "memory of processes: the host that weir was started on over time",
		"all 1.50; weir 0.75; server-1 0.20; stolen 0.00", "5 servers 2.50", "read 2.00 KiB; written 0 B", "server-1 1.00 MiB",
	)
	for _, none := range []string{"page cache", "network:", "disk bytes: the host of agent bk", "1e+", "NaN"} {
		if strings.Contains(got.String(), none) {
			t.Errorf("the page says %q, without a figure", none)
		}
	}
}

func TestTornHostLogKeepsWholeLines(t *testing.T) {
	dir := t.TempDir()
	text := `{"schema": "weir.host/v1"}` + "\n" + `{"from_ns":0,"to_ns":1000000000,"host":{"user_s":1,"system_s":1},"processes":[]}` + "\n" + `{"from_ns":10000`
	must.Do(t, os.WriteFile(filepath.Join(dir, result.FileHost), []byte(text), 0o600))
	c, err := NewCourse(new(result.Result), []result.Interval{{TS: 0, Phase: "measure"}, {TS: 1, Phase: "measure"}}, dir)
	if err == nil || !strings.Contains(err.Error(), "host.jsonl:3") {
		t.Errorf("error %v", err)
	}
	if len(c.hosts) != 1 || len(c.tracks["host  busy"].points) != 1 {
		t.Errorf("hosts %v, tracks %v", c.hosts, c.tracks)
	}
}
