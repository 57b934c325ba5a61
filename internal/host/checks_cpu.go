package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
)

// Limits for the processor checks.
const (
	enoughCores = 4 // one each for a pacer, the client library, the system and the rest
	fewCores    = 2 // with fewer, a pacer and the system wait for each other

	// deepIdleUS is the exit latency of an idle state that would show in a p99 of about 100 µs. On Intel
	// servers C1E takes 10 µs or less, C6 100 µs and more.
	deepIdleUS = 50

	// Shares of the time of all cores. In a sample of one second on two cores, 1 % is two ticks of the
	// kernel's clock.
	stealWarn, stealBad = 0.01, 0.05
	stealBootWarn       = 0.01
	othersWarn          = 0.05
	othersBad           = 0.25
)

func checkCores(o *observed) Finding {
	if o.facts.Cores == 0 {
		return unknown("the host lists no processors")
	}
	found := quantity.Plural(o.facts.Cores, "core")
	if o.physical != nil && *o.physical < o.facts.Cores {
		found = fmt.Sprintf("%d logical cores on %d physical", o.facts.Cores, *o.physical)
	}
	const do = "Run the system under test on another host, or give this one more cores."
	switch {
	case o.facts.Cores < fewCores:
		return bad(found, do)
	case o.facts.Cores < enoughCores:
		return warn(found, do)
	}
	return healthy(found)
}

func checkQuota(o *observed) Finding {
	if o.facts.CgroupCores == nil {
		if !o.grouped {
			return unknown("this host shows no CPU control group")
		}
		return healthy("none")
	}
	found := strconv.FormatFloat(*o.facts.CgroupCores, 'g', 3, 64) + " cores"
	const do = "Remove the quota and give whole cores instead (docker run --cpuset-cpus 0-3; Kubernetes: guaranteed pods under the static CPU manager)."
	switch {
	case o.throttled != nil && *o.throttled:
		return bad(found+", and it has been used up already", do)
	case int(*o.facts.CgroupCores) < fewCores:
		return bad(found, do)
	}
	return warn(found, do)
}

func checkGovernor(o *observed) Finding {
	governors := o.facts.CPUGovernor
	if governors == "" {
		return unknown("the host shows none (usual for virtual machines: their host decides)")
	}
	if governors == "performance" {
		return healthy(governors)
	}
	found := governors
	if o.scaling != "" {
		found += " (" + o.scaling + ")"
	}
	const do = "Keep the frequency up while measuring; a restart undoes it."
	const command = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
	// With these drivers powersave adapts the frequency; with others it always means the lowest.
	adaptive := slices.Contains([]string{"intel_pstate", "amd-pstate-epp"}, o.scaling)
	if slices.Contains(strings.Split(governors, ","), "powersave") && !adaptive {
		return bad(found, do, command)
	}
	return warn(found, do, command)
}

func checkTurbo(o *observed) Finding {
	switch {
	case o.turbo == nil:
		return unknown("the host does not show it")
	case !*o.turbo:
		return healthy("off")
	}
	return warn("on", "Turn it off to compare runs; the figures are then somewhat lower, and repeat better.", o.turboSwitch)
}

func checkIdle(o *observed) Finding {
	if len(o.idle) == 0 {
		if o.idleBy == "" {
			return unknown("the host shows none")
		}
		return healthy("none")
	}
	deepest := slices.MaxFunc(o.idle, func(a, b idleState) int { return int(int64(a.latencyUS) - int64(b.latencyUS)) })
	found := fmt.Sprintf("%s, %d µs to wake", deepest.name, deepest.latencyUS)
	if deepest.latencyUS < deepIdleUS {
		return healthy(found)
	}
	return warn(found, "Keep cores out of deep sleep while measuring.", fmt.Sprintf("sudo cpupower idle-set -D %d", deepIdleUS))
}

// vdsoClocks are the clock sources that can be read without a system call.
var vdsoClocks = [...]string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "stp", "timebase", "riscv_clocksource"}

func checkClockSource(o *observed) Finding {
	source := o.facts.ClockSource
	switch {
	case source == "":
		return unknown(notShown)
	case slices.Contains(vdsoClocks[:], source):
		return healthy(source)
	case slices.Contains(o.clocks, "tsc"):
		return bad(source, "Use the processor's own counter, unless the kernel's log says that it is unreliable.",
			"sudo dmesg | grep -i tsc", "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource")
	}
	return bad(source, "The kernel does not offer the processor's own counter here: its log says why. Use another host.", "sudo dmesg | grep -i -e tsc -e clocksource")
}

func checkTimers(o *observed) Finding {
	var found []string
	if o.slackNS != nil {
		found = append(found, fmt.Sprintf("timer slack %s ns (a pacer sets its own to 1 ns)", quantity.Count(*o.slackNS)))
	}
	if o.realtime != nil {
		found = append(found, "SCHED_FIFO "+map[bool]string{true: "permitted (--fifo)", false: "not permitted"}[*o.realtime])
	}
	if len(found) == 0 {
		return unknown(notShown)
	}
	return healthy(strings.Join(found, ", "))
}

func checkSteal(o *observed) Finding {
	if o.stealBoot == nil && o.stealNow == nil {
		return unknown(notShown)
	}
	now, boot := 0.0, 0.0
	var found []string
	if o.stealNow != nil {
		now = *o.stealNow
		found = append(found, percent(now)+" now")
	}
	if o.stealBoot != nil {
		boot = *o.stealBoot
		found = append(found, percent(boot)+" since boot")
	}
	all := strings.Join(found, ", ")
	const do = "Use a dedicated host, or an instance with its own cores; bursting instances lose theirs when their credit is used up."
	switch {
	case now >= stealBad:
		return bad(all, do)
	case now >= stealWarn, boot >= stealBootWarn:
		return warn(all, do)
	case o.stealNow == nil:
		return unknown(all + "; now not known")
	}
	return healthy(all)
}

func checkLoad(o *observed) Finding {
	var found []string
	if o.othersBusy != nil {
		found = append(found, percent(*o.othersBusy)+" of all cores")
	}
	for _, p := range o.busiest {
		name := p.name
		if p.processes > 1 {
			name += fmt.Sprintf(" (%d processes)", p.processes)
		}
		found = append(found, fmt.Sprintf("%s %.2f cores", name, p.cores))
	}
	if o.load != nil {
		found = append(found, fmt.Sprintf("load %.2f over a minute", *o.load))
	}
	all := strings.Join(found, ", ")
	const do = "Stop other programs, or wait until they end."
	const command = "top -b -n 1 | head -20"
	switch {
	case o.othersBusy != nil && *o.othersBusy >= othersBad:
		return bad(all, do, command)
	case o.othersBusy != nil && *o.othersBusy >= othersWarn:
		return warn(all, do, command)
	case o.load != nil && o.facts.Cores > 0 && *o.load >= float64(o.facts.Cores):
		busy := fmt.Sprintf("load %.2f over a minute on %d cores", *o.load, o.facts.Cores)
		if len(found) > 1 {
			busy += "; now " + strings.Join(found[:len(found)-1], ", ")
		}
		return warn(busy, do, command)
	case o.othersBusy == nil && o.load == nil:
		return unknown(notShown)
	}
	return healthy(all)
}

func checkIsolated(o *observed) Finding {
	switch {
	case o.isolated == nil:
		return unknown(notShown)
	case *o.isolated == "":
		return healthy("none")
	case !o.onIsolated:
		return healthy(*o.isolated + ", weir runs elsewhere")
	case len(o.elsewhere) == 0:
		return warn(*o.isolated+", and weir may run only there", "Start weir where it may use cores that are not isolated.")
	}
	cpus := make([]string, len(o.elsewhere))
	for i, c := range o.elsewhere {
		cpus[i] = strconv.Itoa(c)
	}
	return warn(*o.isolated+", and weir may run there", "Start weir on the other cores.", "taskset -c "+strings.Join(cpus, ",")+" weir run")
}

func checkNUMA(o *observed) Finding {
	switch {
	case o.nodes == nil:
		return unknown(notShown)
	case *o.nodes == 1:
		return healthy("1 node")
	}
	return warn(quantity.Plural(*o.nodes, "node"), "Keep weir on one node, and the system under test on another host or another node.",
		"numactl --cpunodebind=0 --membind=0 weir run")
}

func checkVirtual(o *observed) Finding {
	virtual := o.facts.Virtual != nil && *o.facts.Virtual
	var found []string
	if o.facts.Container != "" {
		found = append(found, "container ("+o.facts.Container+")")
	}
	switch {
	case virtual:
		found = append(found, "virtual machine")
	case o.facts.Virtual == nil:
		found = append(found, "the processor does not say whether a hypervisor runs it")
	case len(found) == 0:
		found = append(found, "none")
	}
	if o.facts.Product != "" {
		found = append(found, o.facts.Product)
	}
	all := strings.Join(found, ", ")
	switch {
	case virtual:
		return warn(all, "Compare only what ran on the same kind of host, repeat runs, and look at steal.")
	case o.facts.Virtual == nil:
		return unknown(all)
	}
	return healthy(all)
}

func checkMitigations(o *observed) Finding {
	if !o.mitigations {
		return unknown(notShown)
	}
	return healthy(fmt.Sprintf("%d faults of the processor mitigated, %d open", o.mitigated, o.vulnerable))
}
