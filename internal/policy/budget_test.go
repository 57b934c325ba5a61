package policy

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// budgets is how many lines of Go a folder may have, tests left out. A row counts all
// folders below it that no longer row counts. A row that ends in /* counts each folder
// directly below for itself. To go over is a decision: raise the number in the same
// commit, and say in its message why.
var budgets = map[string]int{
	".":                      40,   // package weir
	"bench/peers":            1110, // thirteen flows beside nine tools
	"cmd":                    20,
	"docs":                   20, // what the program embeds
	"docs/examples":          280,
	"driver":                 2260,
	"driver/drivertest":      3370,
	"drivers/*":              1000, // each
	"drivers/exec":           1450,
	"drivers/internal":       8900, // with hosted services in tests, what of a server's words is kept, and what drivers had each for itself
	"drivers/iris":           2250, // with tunnels: flow control in both directions, and how each end leaves
	"drivers/jetstream":      1830,
	"drivers/kafka":          910,
	"drivers/kmq":            1350,
	"drivers/mongodb":        1060,
	"drivers/mqtt":           1350,
	"drivers/nats":           700, // with other subscriptions that a server looks through
	"drivers/natsstreaming":  1550,
	"drivers/nsq":            2180,
	"drivers/postgres":       1830,
	"drivers/pulsar":         1290,
	"drivers/rabbitmq":       2650,
	"drivers/rabbitmqstream": 1800,
	"drivers/redisstreams":   1780,
	"drivers/rocketmq":       1620,
	"drivers/sqs":            1090, // with dead letters
	"engine":                 6320, // with a lane for each producer that may block, with the ends of collections of garbage, a pause and churn of several parts, and dead letters
	"internal/*":             400,  // each
	"internal/broker":        6500, // with a place for each node, disks, clocks, how far a download is, and all that the host lacks for several recipes, a first confirmation, control groups, and settings as they are typed
	"internal/capacity":      940,  // with the run that follows, and reading the file
	"internal/cli":           4300, // the reasons of exit codes, and weir serve
	"internal/clockstep":     680,  // code for the vDSO, its way there under a trace, and the process that traces
	"internal/compare":       1900, // with chosen figures, keys that part runs, and the tally of all sides
	"internal/commandline":   710,  // keys as flags, help for small terminals, the words of other tools
	"internal/metrics":       480,  // with where runs are shown
	"internal/completion":    510,
	"internal/conduct":       1110,
	"internal/deal":          550,
	"internal/driverpage":    890,
	"internal/export":        710,  // five formats
	"internal/fleet":         9420, // with places that silent agents keep, with faults that agents do, to their own clocks, too, the pages of its verbs, and what an agent's flags let scenarios refer to
	"internal/guard":         620,
	"internal/host":          3900, // with the host second by second
	"internal/index":         900,  // schema, look, list
	"internal/judge":         3970, // with what all messages of a run bound, what other programs took, seconds without samples, and what a disturbed host excuses
	"internal/layout":        1350, // with contents, the script of pages, and tables on small terminals
	"internal/ledger":        3960,
	"internal/live":          970, // with the console above which a run is shown, and what is still on its way
	"internal/natsd":         440,
	"internal/nodecut":       610,  // two programs in eBPF, control groups, and a trial of both, which may take too long
	"internal/network":       2090, // the link, namespaces, its proof, profiles, cuts
	"internal/offset":        920,
	"internal/pace":          1380,
	"internal/plot":          590,  // with heat maps, limits, bars and a strip under the axis
	"internal/omb":           970,  // the files of another tool, and their keys
	"internal/fault":         1160, // with disconnects, disks and clocks by a time, and shares of agents, and by which means a cut is done
	"internal/report":        8600, // with runs that were killed and done again, with outages, what a next command is for below it, two counts of delivered explained, latencies over time and in windows, what servers said, runs on one time axis, over a varied key, searches, told when they end, too, formats by name, which folders an argument means, by which keys runs can be parted, and verdicts of valid sides
	"internal/runs":          3890, // with the plan of a series and what is left of it, with the lines of logs beside the slowest messages, what adds runs, what a confirmation means while servers die, faults of agents, a single run at once, and what agents cannot do
	"internal/scenario":      6960, // with the network, troubled consumers, dead letters, keys that vary together, targets of faults by agents, and what leads from other words and several values
	"internal/serve":         1900, // list, comparisons, live runs, static pages
	"internal/serverlog":     480,  // following files, reading what came at some time, and cleaning it
	"internal/slowdisk":      430,  // a file system, and its process
	"internal/stats":         1290,
	"internal/study":         600,  // searches, suites, the folder of both, and the searches that a report is on
	"internal/suite":         1700, // the format, the list, the plan, the table and what to do next, the charts and the curves of repeated experiments
	"internal/tools":         650,  // with the check of other platforms
	"internal/truth":         1850,
	"measure":                2100, // with the slowest messages
	"result":                 3210, // with the plan of a series
	"schedule":               1760,

	"drivers/internal/amqp1conn": 1220, // with link pairs and addresses, for RabbitMQ 4
}

// budget returns what counts a folder's lines, and how many there may be; "" where no
// row does.
func budget(dir string) (counted string, most int) {
	for d := dir; ; d = path.Dir(d) {
		if most := budgets[d]; most > 0 && (d != "." || dir == ".") {
			return d, most
		}
		if most := budgets[path.Dir(d)+"/*"]; most > 0 {
			return d, most
		}
		if d == "." {
			return "", 0
		}
	}
}

// overspent returns what is wrong with the lines that folders have.
func overspent(lines map[string]int) (faults []string) {
	sums := map[string]int{}
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		counted, _ := budget(dir)
		if counted == "" {
			faults = append(faults, dir+": no row of budgets counts this folder: add a row")
			continue
		}
		sums[counted] += lines[dir]
	}
	for _, counted := range slices.Sorted(maps.Keys(sums)) {
		if _, most := budget(counted); sums[counted] > most {
			faults = append(faults, fmt.Sprintf("%s: %d lines, over its budget of %d: take lines out, or raise the number in "+
				"internal/policy/budget_test.go in the same commit, and say in its message why", counted, sums[counted], most))
		}
	}
	for row := range budgets {
		if _, ok := sums[row]; !ok && !strings.HasSuffix(row, "/*") {
			faults = append(faults, fmt.Sprintf("the table has a row %q that counts no folder: remove it", row))
		}
	}
	return faults
}

func TestFoldersKeepToTheirBudgets(t *testing.T) {
	lines := map[string]int{}
	for _, f := range load(t) {
		if !f.test {
			lines[f.dir()] += strings.Count(string(f.src), "\n")
		}
	}
	for _, fault := range overspent(lines) {
		t.Error(fault)
	}
}

func TestAnOverspentFolderIsFound(t *testing.T) {
	within := map[string]int{}
	for row := range budgets {
		if !strings.HasSuffix(row, "/*") {
			within[row] = 1
		}
	}
	if faults := overspent(within); len(faults) > 0 {
		t.Fatalf("nothing is wrong, but: %q", faults)
	}
	for want, change := range map[string]func(lines map[string]int){
		"engine: ":                func(l map[string]int) { l["engine"] = budgets["engine"] + 1 },
		"driver: ":                func(l map[string]int) { l["driver/blocking"] = budgets["driver"] }, // and 1 in driver
		"drivers/mymq: ":          func(l map[string]int) { l["drivers/mymq"] = budgets["drivers/*"] + 1 },
		"elsewhere: no row":       func(l map[string]int) { l["elsewhere"] = 1 },
		`"engine" that counts no`: func(l map[string]int) { delete(l, "engine") },
	} {
		lines := maps.Clone(within)
		change(lines)
		if faults := overspent(lines); len(faults) != 1 || !strings.Contains(faults[0], want) {
			t.Errorf("%q: %q", want, faults)
		}
	}
}
