package view

import (
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/internal/view/plot"
)

// Limits on what is drawn of hosts.
const (
	mostHosts   = 4
	mostServers = 3 // each with a line of its own; more share one line
)

// A hostCourse is what one host did in a run, as tracks of its Course.
type hostCourse struct {
	agent string   // agent on it; "" for the host on which weir was started
	lines []string // processes: weir and servers
}

// track names a track of a host.
func (h hostCourse) track(of string) string { return "host " + h.agent + " " + of }

// sampled adds host samples; in a long run it merges them.
func (c *Course) sampled(samples iter.Seq2[host.Sample, error]) error {
	series := map[string]*host.Series{}
	var failed error
	for x, err := range samples {
		if failed = err; err != nil {
			break
		}
		middle := (c.origin.seconds(x.FromNS) + c.origin.seconds(x.ToNS)) / 2
		if x.ToNS <= x.FromNS || middle < c.from || middle > c.to {
			continue // nothing is drawn there
		}
		s := series[x.Agent]
		if s == nil {
			if len(series) >= mostHosts {
				continue
			}
			s = new(host.Series)
			series[x.Agent] = s
			c.hosts = append(c.hosts, hostCourse{agent: x.Agent})
		}
		s.Add(x)
	}
	for i := range c.hosts {
		c.layHost(&c.hosts[i], series[c.hosts[i].agent].All())
	}
	return failed
}

// leastDrawn is the shortest sample that is drawn by itself: in a shorter one, a 10 ms kernel tick weighs
// too much.
const leastDrawn = 500 * time.Millisecond

// joined merges short samples with a neighbour.
func joined(samples []host.Sample) (all []host.Sample) {
	for _, x := range samples {
		if last := len(all) - 1; last >= 0 && min(x.ToNS-x.FromNS, all[last].ToNS-all[last].FromNS) < int64(leastDrawn) {
			all[last] = all[last].Then(x)
			continue
		}
		all = append(all, x)
	}
	return all
}

// layHost makes the tracks of one host.
func (c *Course) layHost(h *hostCourse, samples []host.Sample) {
	samples = joined(samples)
	servers := map[string]bool{}
	for _, x := range samples {
		for _, p := range x.Processes {
			if p.Name != host.ProcessWeir && !servers[p.Name] {
				servers[p.Name] = true
				h.lines = append(h.lines, p.Name)
			}
		}
	}
	line := func(name string) string { return name }
	if len(h.lines) > mostServers {
		all := fmt.Sprintf("%d servers", len(h.lines))
		line = func(string) string { return all }
		h.lines = []string{all}
	}
	h.lines = append([]string{host.ProcessWeir}, h.lines...)
	raw := map[string][]plot.Point{}
	for _, x := range samples {
		span := float64(x.ToNS-x.FromNS) / 1e9
		put := func(of string, y float64) {
			raw[h.track(of)] = append(raw[h.track(of)], plot.Point{X: c.origin.seconds(x.FromNS), Wide: span, Y: y})
		}
		last := func(of string, y float64) { // state at the end of the sample
			raw[h.track(of)] = append(raw[h.track(of)], plot.Point{X: c.origin.seconds(x.ToNS), Y: y})
		}
		perSecond := func(n *uint64) float64 { return known(n) / span }
		o := x.Host
		put("busy", (known(o.UserS)+known(o.SystemS))/span)
		put("iowait", known(o.IOWaitS)/span)
		put("steal", known(o.StealS)/span)
		put("switches", perSecond(o.ContextSwitches))
		put("faults", perSecond(o.MajorFaults))
		put("disk read", perSecond(o.DiskReadBytes))
		put("disk written", perSecond(o.DiskWrittenBytes))
		put("reads", perSecond(o.DiskReads))
		put("writes", perSecond(o.DiskWrites))
		put("flushes", perSecond(o.DiskFlushes))
		put("received", perSecond(o.ReceivedBytes))
		put("sent", perSecond(o.SentBytes))
		put("loopback", perSecond(o.LoopbackBytes))
		last("cached", known(o.PageCacheBytes))
		last("dirty", known(o.DirtyBytes))
		sums := map[string]float64{}
		for _, p := range x.Processes {
			name := host.ProcessWeir
			if p.Name != name {
				name = line(p.Name)
			}
			if p.Processes == 0 && p.UserS == nil {
				continue // it did not exist then
			}
			add := func(of string, y float64) { sums[of+" "+name] += y } // an unknown value makes the sum unknown
			add("cores", (known(p.UserS)+known(p.SystemS))/span)
			add("memory", known(p.RSSBytes))
			add("switches", perSecond(p.VoluntarySwitches)+perSecond(p.InvoluntarySwitches))
			add("read", perSecond(p.ReadBytes))
			add("written", perSecond(p.WrittenBytes))
		}
		for _, name := range h.lines {
			for _, of := range []string{"cores", "memory", "switches", "read", "written"} {
				y, there := sums[of+" "+name]
				if !there {
					y = math.NaN()
				}
				if of == "memory" {
					last(of+" "+name, y)
				} else {
					put(of+" "+name, y)
				}
			}
		}
	}
	c.lay(raw)
}

// known is the value of n; NaN if unknown.
func known[N int64 | uint64 | float64](n *N) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}

// hostsOverTime draws each host; of a run among several its own page has them.
func (t *single) hostsOverTime() {
	if t.Course != nil && t.o.lone {
		for i, h := range t.Course.hosts {
			t.hostOverTime(i, h)
		}
	}
}

// hostOverTime draws a host's activity below the message charts, over the same time.
func (t *single) hostOverTime(i int, h hostCourse) {
	where := "the host"
	switch {
	case h.agent != "":
		where = "the host of agent " + h.agent
	case len(t.Course.hosts) > 1:
		where = "the host that weir was started on"
	}
	id := func(s string) string { return fmt.Sprintf("host%d-%s", i, s) }
	each := func(of string, classes ...string) (all []curve) {
		for k, name := range h.lines {
			all = append(all, curve{h.track(of + " " + name), name, classes[k]})
		}
		return all
	}
	own := func(of, name, class string) curve { return curve{h.track(of), name, class} }
	t.drawOver(id("cpu"), "processor: "+where, "In cores. The host's line has all processes; waiting is idle time while a disk had work.", low, upTo("cores", coresText), layout.Cores,
		append([]curve{own("busy", "all", "s5 wide")}, append(each("cores", "s1", "s2", "s3", "s4"), own("steal", "stolen", "s6 thin"), own("iowait", "waiting for disks", "s6"))...))
	t.drawOver(id("disk"), "disk bytes: "+where, "Of all disks, as the kernel sends requests to them; beside them what processes made the kernel read, and the pages that they made dirty.", low, ofBytes("bytes per second"), layout.Octets,
		append([]curve{own("disk read", "read", "s1"), own("disk written", "written", "s2")}, t.diskOf(h)...))
	t.drawOver(id("operations"), "disk operations: "+where, "A flush makes a disk write what it has in its own memory.", low, upTo("per second", quantity.Rate), layout.PerSecond,
		[]curve{own("reads", "reads", "s1"), own("writes", "writes", "s2"), own("flushes", "flushes", "s3")})
	t.drawOver(id("cache"), "page cache: "+where, "Files that the kernel has in memory, and of these what is still to be written to a disk.", low, ofBytes("bytes"), layout.Octets,
		[]curve{own("cached", "page cache", "s1"), own("dirty", "to be written", "s2")})
	t.drawOver(id("memory"), "memory of processes: "+where, "Resident.", low, ofBytes("bytes"), layout.Octets, each("memory", "s1", "s2", "s3", "s4"))
	t.drawOver(id("network"), "network: "+where, "Of the network namespace that weir is in. Loopback carries what processes of this host say to each other.", low, ofBytes("bytes per second"), layout.Octets,
		[]curve{own("received", "received", "s1"), own("sent", "sent", "s2"), own("loopback", "loopback", "s3")})
	t.drawOver(id("switches"), "context switches: "+where, "How often threads took turns on the cores.", low, upTo("per second", quantity.Rate), layout.PerSecond,
		append([]curve{own("switches", "all", "s5 wide")}, each("switches", "s1", "s2", "s3", "s4")...))
}

// diskOf returns the lines of what servers read and wrote.
func (t *single) diskOf(h hostCourse) (all []curve) {
	for k, name := range h.lines[1:] {
		class := []string{"s3", "s4", "s6"}[k]
		all = append(all, curve{h.track("read " + name), strings.TrimSpace(name + " read"), class + " thin"}, curve{h.track("written " + name), name + " written", class})
	}
	return all
}

// upTo returns an axis from 0.
func upTo(label string, text func(float64) string) func(least, most float64) plot.Axis {
	return func(_, most float64) plot.Axis { return plot.Linear(0, 1.15*most, 4, label, text) }
}

// ofBytes returns an axis from 0 with ticks at round numbers in units of 1024.
func ofBytes(label string) func(least, most float64) plot.Axis {
	return func(_, most float64) plot.Axis {
		most = 1.15 * max(1, most)
		return plot.Stepped(0, most, math.Pow(2, math.Ceil(math.Log2(most/4))), label, quantity.Bytes)
	}
}

func coresText(v float64) string { return fmt.Sprintf("%.2f", v) }
