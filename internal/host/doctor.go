package host

import (
	"context"
	"slices"
	"time"

	"github.com/weirmq/weir/internal/pace"
)

// A Health rates how well one property of the host suits a measurement.
type Health string

// The health values. Bad makes figures useless or a run fail; Warn makes figures worse than necessary,
// or less repeatable.
const (
	Healthy Health = "ok"
	Warn    Health = "warn"
	Bad     Health = "bad"
	Unknown Health = "not known" // the host does not report it
)

// A Finding is what one check found.
type Finding struct {
	Name     string   `json:"name"`
	Health   Health   `json:"health"`
	Found    string   `json:"found"`              // what the host reports; for Unknown, why it is not known
	Why      string   `json:"why"`                // how it affects a measurement
	Do       string   `json:"do,omitempty"`       // one sentence; empty if nothing needs to be done
	Commands []string `json:"commands,omitempty"` // commands for it, to be typed in this order
}

// A CheckTarget tells Examine what to check besides the host itself.
type CheckTarget struct {
	Work   string        // folder for results
	Temp   string        // folder for the files of systems that weir starts
	Sample time.Duration // how long to watch the processor; 0: one second
}

// Examine looks for properties of this host, as it is now, that would spoil a measurement, and returns
// the findings of all checks in order. It only reads, and asks time daemons by their own programs. It takes
// the sample's time and some milliseconds; when ctx ends, the sample is cut short.
func Examine(ctx context.Context, p CheckTarget) []Finding {
	if p.Sample <= 0 {
		p.Sample = time.Second
	}
	o := observe(ctx, p)
	o.facts = Environment(ctx)
	o.daemons = AskDaemons(ctx, pace.NewClock())
	return examine(&o)
}

// examine rates the observations.
func examine(o *observed) []Finding {
	findings := make([]Finding, len(checks))
	for i, c := range checks {
		f := c.judge(o)
		f.Name, f.Why = c.name, c.why
		findings[i] = f
	}
	return findings
}

// A check rates one property of a host.
type check struct {
	name  string
	why   string
	judge func(o *observed) Finding
}

// checks lists all checks in display order.
var checks = [...]check{
	{"cores", "the generator's threads (pacers), the client library, the system and everything else share them; with too few each waits for the others", checkCores},
	{"processor quota", "a control group that has used its quota stands still for the rest of a period, mostly 100 ms", checkQuota},
	{"pod", "in Kubernetes a container that is not Guaranteed, or shares its processors, waits for others", checkPod},
	{"system on this node", "in Kubernetes a system on an agent's node takes processors, caches and network from it, and some of its messages cross no network", checkNode},
	{"frequency governor", "an idle core is slow at first, so a low rate looks worse than a high one", checkGovernor},
	{"turbo", "the clock then depends on the temperature and on how many cores are busy", checkTurbo},
	{"idle states", "a core that sleeps deeply takes as long to wake as its state says, and the next message waits for it", checkIdle},
	{"clock source", "each message costs some readings of the clock; a slow source is a system call of a microsecond for each", checkClockSource},
	{"timers", "the generator's threads (pacers) wake from precise sleeps; with --fifo, under SCHED_FIFO, no other process keeps them waiting", checkTimers},
	{"steal", "while the hypervisor runs another machine this one stands still, and every message due then is late", checkSteal},
	{"other work", "other programs take cores from the generator and the system", checkLoad},
	{"isolated cores", "the kernel moves no thread between isolated cores: all of a process's threads may share one", checkIsolated},
	{"NUMA", "memory of another node is slower, and which one a thread gets changes from run to run", checkNUMA},
	{"memory", "weir holds up to limits.memory (1GiB) of messages in flight, and the system its own", checkMemory},
	{"swap", "a page that has to come back from a disk stops its thread for milliseconds", checkSwap},
	{"huge pages", "the kernel may stop a thread to make a huge page of small ones", checkHugePages},
	{"open files", "each producer and consumer opens one file for its connection; a system on this host opens another", checkFiles},
	{"locked memory", "io_uring and systems that lock their memory are refused beyond the limit; weir itself locks none", checkMemlock},
	{"ports", "each connection to one address needs a local port of its own, and keeps it for a minute after its end", checkPorts},
	{"listen backlog", "connections that arrive together and find the queue full are tried again after a second", checkBacklog},
	{"time synchronisation", "one host has one clock and needs no synchronisation; end-to-end times between hosts need it", checkTime},
	{"working folder", "results and the files of the systems under test are written there", checkWork},
	{"temporary folder", "the systems that weir starts keep their files there", checkTemp},
	{"virtualisation", "unseen neighbours share cores, caches, memory bandwidth and disks; figures hold for this kind of host only", checkVirtual},
	{"mitigations", "they slow down system calls: compare only hosts with the same ones", checkMitigations},
}

func healthy(found string) Finding { return Finding{Health: Healthy, Found: found} }

func unknown(why string) Finding { return Finding{Health: Unknown, Found: why} }

func warn(found, do string, commands ...string) Finding {
	return Finding{Health: Warn, Found: found, Do: do, Commands: commands}
}

func bad(found, do string, commands ...string) Finding {
	return Finding{Health: Bad, Found: found, Do: do, Commands: commands}
}

// Worst returns the worst health of findings, ignoring unknowns.
func Worst(fs []Finding) Health {
	for _, h := range []Health{Bad, Warn} {
		if slices.ContainsFunc(fs, func(f Finding) bool { return f.Health == h }) {
			return h
		}
	}
	return Healthy
}
