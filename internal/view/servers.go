package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// servers writes the resources used by the servers that weir started, all together.
func (t *single) servers() {
	if t.r.Servers == nil {
		return
	}
	t.serversUsed()
	if s := fromMemory(t.r); s != "" {
		t.Labelled("", plain(s))
	}
}

func (t *single) serversUsed() {
	var cores, waited, memory, written, disk float64
	parts := map[*float64]bool{} // those with any value
	add := func(sum *float64, v float64) { *sum, parts[sum] = *sum+v, true }
	for _, p := range t.r.Servers.Processes {
		if p.Cores != nil {
			add(&cores, *p.Cores)
		}
		if p.WaitedS != nil {
			add(&waited, *p.WaitedS)
		}
		for _, x := range []struct {
			sum *float64
			v   *uint64
		}{{&memory, p.RSSMaxBytes}, {&written, p.WrittenBytes}, {&disk, p.DiskBytes}} {
			if x.v != nil {
				add(x.sum, float64(*x.v))
			}
		}
	}
	var says []string
	for _, x := range []struct {
		sum  *float64
		text string
	}{
		{&cores, fmt.Sprintf("used %.2f cores", cores)},
		{&waited, "waited " + quantity.Time(int64(waited*1e9)) + " for cores"},
		{&memory, "up to " + quantity.Bytes(memory) + " of memory"},
		{&written, quantity.Bytes(written) + " written"},
		{&disk, quantity.Bytes(disk) + " on disk at the end"},
	} {
		if parts[x.sum] {
			says = append(says, x.text)
		}
	}
	if len(says) > 0 {
		t.Labelled("servers", plain(strings.Join(says, ", ")))
	}
}

// leastDelivered is the fewest delivered bytes for which it matters that none came from a disk.
const leastDelivered = 1 << 20

// fromMemory says that deliveries came from memory if the figures show it: the servers wrote at least half
// of the delivered bytes to files, and read none from a disk. Else it is "".
func fromMemory(r *result.Result) string {
	t := r.Throughput
	if t.ReceivedBytesPerS == nil || r.Run.Mode == result.ModeBacklog { // it is drained after the window
		return ""
	}
	delivered := *t.ReceivedBytesPerS * cmp.Or(t.ReceiveS, r.Run.MeasureS)
	var read, written float64
	for _, p := range r.Servers.Processes {
		if p.ReadBytes == nil || p.WrittenBytes == nil {
			return ""
		}
		read += float64(*p.ReadBytes)
		written += float64(*p.WrittenBytes)
	}
	if read > 0 || delivered < leastDelivered || written < delivered/2 {
		return ""
	}
	return fmt.Sprintf("disk reads 0 B while %s were delivered: served from the page cache, or from the servers' own memory", quantity.Bytes(delivered))
}

// hosts writes the activity of each host in the measured window; in brief only how busy it was.
func (t *single) hosts(brief bool) {
	for i := range t.r.Resources {
		x := &t.r.Resources[i]
		span := float64(x.ToNS-x.FromNS) / 1e9
		if !(span > 0) {
			continue
		}
		label, of := "host", ""
		if x.Agent != "" {
			of = "of agent " + layout.Shortened(x.Agent, 40) + ": "
		}
		all := [][]string{processorSays(&x.Host, span), disksSay(&x.Host), networkSays(&x.Host)}
		if brief {
			all = all[:1]
		} else if x.Beyond > 0 {
			all = append(all, []string{quantity.Counted(x.Beyond, "process", "processes") + " of the system were not read: there are too many"})
		}
		for _, says := range all {
			if len(says) > 0 {
				t.Labelled(label, plain(of+strings.Join(says, ", ")))
				label, of = "", ""
			}
		}
	}
}

func processorSays(h *host.HostSample, span float64) (says []string) {
	if h.UserS == nil || h.SystemS == nil || h.IdleS == nil || h.IOWaitS == nil || h.StealS == nil {
		return nil
	}
	all := *h.UserS + *h.SystemS + *h.IdleS + *h.IOWaitS + *h.StealS
	if !(all > 0) {
		return nil
	}
	says = append(says, fmt.Sprintf("processor %.1f %% busy (%.1f %% user, %.1f %% system), %.1f %% waiting for disks, %.1f %% stolen",
		100*(*h.UserS+*h.SystemS)/all, 100**h.UserS/all, 100**h.SystemS/all, 100**h.IOWaitS/all, 100**h.StealS/all))
	if h.ContextSwitches != nil {
		says = append(says, quantity.Rate(float64(*h.ContextSwitches)/span)+" context switches")
	}
	return says
}

func disksSay(h *host.HostSample) (says []string) {
	for _, x := range []struct {
		verb       string
		bytes, ops *uint64
	}{{"read", h.DiskReadBytes, h.DiskReads}, {"wrote", h.DiskWrittenBytes, h.DiskWrites}} {
		if x.bytes != nil && x.ops != nil {
			says = append(says, fmt.Sprintf("%s %s in %s", x.verb, quantity.Bytes(float64(*x.bytes)), quantity.Counted(*x.ops, "operation", "operations")))
		}
	}
	if len(says) > 0 {
		says[0] = "disks " + says[0]
	}
	if h.DiskFlushes != nil {
		says = append(says, quantity.Counted(*h.DiskFlushes, "flush", "flushes"))
	}
	if h.MajorFaults != nil {
		says = append(says, quantity.Counted(*h.MajorFaults, "major fault", "major faults"))
	}
	if h.PageCacheBytes != nil && h.DirtyBytes != nil {
		says = append(says, fmt.Sprintf("page cache %s at the end with %s to be written", quantity.Bytes(float64(*h.PageCacheBytes)), quantity.Bytes(float64(*h.DirtyBytes))))
	}
	return says
}

func networkSays(h *host.HostSample) (says []string) {
	if h.ReceivedBytes != nil && h.SentBytes != nil {
		says = append(says, fmt.Sprintf("network received %s and sent %s", quantity.Bytes(float64(*h.ReceivedBytes)), quantity.Bytes(float64(*h.SentBytes))))
	}
	if h.LoopbackBytes != nil {
		says = append(says, "loopback "+quantity.Bytes(float64(*h.LoopbackBytes)))
	}
	return says
}

// efficiency writes the resources and money per message.
func (t *single) efficiency() {
	x := t.r.Efficiency
	if x == nil {
		return
	}
	var says []string
	if x.MessagesPerCPUS != nil {
		says = append(says, fmt.Sprintf("%s messages for each core-second of the servers", quantity.Significant(*x.MessagesPerCPUS, false)))
	}
	if x.WrittenPerMessageByte != nil {
		says = append(says, quantity.Significant(*x.WrittenPerMessageByte, false)+" bytes written for each byte of payload")
	}
	if x.CostPerMillion != nil && x.PricePerHour != nil {
		says = append(says, fmt.Sprintf("a million messages cost %s at %v an hour", quantity.Significant(*x.CostPerMillion, false), *x.PricePerHour))
	}
	if len(says) > 0 {
		t.Labelled("efficiency", plain(strings.Join(says, "; ")+" ("+x.Messages+" messages count)"))
		return
	}
	for _, u := range x.Unknown[:min(1, len(x.Unknown))] {
		t.Labelled("efficiency", plain("not known: "+u.Why))
	}
}
