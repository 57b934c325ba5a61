package scenario

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/fault"
)

func TestFaultsOfAScenario(t *testing.T) {
	const head = "weir: 1\nsystem: {driver: served, start: process, nodes: 3}\nmeasure: 30s\n"
	for name, x := range map[string]struct{ file, want string }{
		"texts":                             {head + "faults: [kill 1 at 5s for 2s, stop all at 10s for 1s every 5s]\n", `faults: ["kill 1 at 5s for 2s", "stop all at 10s for 1s every 5s"]`},
		"mappings":                          {head + "faults: [{at: 5s, kill: 2, for: 2s}, {restart: n-3, at: 0}]\n", `faults: ["kill 2 at 5s for 2s", "restart n-3 at 0s"]`},
		"one alone":                         {head + "faults: {at: 5s, stop: all}\n", `faults: ["stop all at 5s"]`},
		"none":                              {head + "faults: []\n", ""},
		"a verb that is none":               {head + "faults: [burn 1 at 5s]\n", `f.yaml:4:10: faults[0]: "burn" is not something to do (` + strings.Join(fault.Verbs(), ", ") + ")"},
		"connections":                       {head + "faults: [disconnect consumers at 5s, {disconnect: producers, from: 2, at: 6s, for: 1s}]\n", `faults: ["disconnect consumers at 5s", "disconnect producers from 2 at 6s for 1s"]`},
		"connections to a node that is not": {head + "faults: [disconnect clients from 4 at 5s]\n", "f.yaml:4:10: faults[0]: there is no node 4 (all, leader, follower, a node from 1 to 3, or n-1, n-2, n-3)"},
		"connections of a node":             {head + "faults: [disconnect 1 at 5s]\n", `f.yaml:4:10: faults[0]: "1" is not a group of connections (clients, producers, consumers; from says to which servers)`},
		"a kill from something":             {head + "faults: [{kill: 1, from: 2, at: 5s}]\n", "f.yaml:4:20: faults[0].from: is not known beside kill (at, for, every)"},
		"slow disks":                        {head + "faults: [slow 1 by 20ms at 5s for 1s, {slow: 2, by: 5ms, at: 6s}]\n", `faults: ["slow 1 by 20ms at 5s for 1s", "slow 2 by 5ms at 6s"]`},
		"clocks":                            {head + "faults: [clock 1 by -5s at 5s for 1s, {by: -3s, at: 6s, clock: 2}]\n", `faults: ["clock 1 by -5s at 5s for 1s", "clock 2 by -3s at 6s"]`},
		"clocks of agents":                  {"weir: 1\nsystem: {driver: served}\nfaults: [clock agents by -1h at 5s, {clock: agents, on: b, by: 2s, at: 6s, for: 1s}]\n", `faults: ["clock agents by -1h at 5s", "clock agents on b by 2s at 6s for 1s"]`},
		"a clock of an agent, too late":     {"weir: 1\nsystem: {driver: served}\nfaults: [clock agents by -1h at 50s]\n", "f.yaml:3:10: faults[0]: begins after the measured window of 10s has ended (at, a shorter time)"},
		"a disk that is slow by less":       {head + "faults: [{slow: 2, by: -3s, at: 6s}]\n", "f.yaml:4:24: faults[0].by: -3s is negative (a duration such as 250ms, 5s, 2m)"},
		"a by that is not":                  {head + "faults: [{kill: 2, by: 5ms, at: 6s}]\n", "f.yaml:4:20: faults[0].by: is not known beside kill (at, for, every)"},
		"cuts":                              {head + "faults: [cut 1 from clients at 5s, {cut: 2, from: 3, at: 6s, for: 1s}, cut all at 8s for 1s]\n", `faults: ["cut 1 from clients at 5s", "cut 2 from 3 at 6s for 1s", "cut all at 8s for 1s"]`},
		"a cut from a node that is not":     {head + "faults: [cut 1 from 4 at 5s]\n", "f.yaml:4:10: faults[0]: there is no node 4 to cut it from (a node from 1 to 3)"},
		"a cut of a single node":            {strings.Replace(head, ", nodes: 3", "", 1) + "faults: [cut 1 from nodes at 5s]\n", "f.yaml:4:10: faults[0]: a single node has no other to be cut from (from clients, or system.nodes: 3)"},
		"no instant":                        {head + "faults: [{kill: 1}]\n", "f.yaml:4:11: faults[0]: does not say when (at: 10s)"},
		"no verb":                           {head + "faults: [{at: 1s}]\n", "f.yaml:4:11: faults[0]: does not say what is done (" + strings.Join(fault.Verbs(), ", ") + ", with a target)"},
		"two verbs":                         {head + "faults: [{at: 1s, kill: 1, stop: 2}]\n", "f.yaml:4:28: faults[0].stop: is not known beside kill (at, for, every)"},
		"a node that is not":                {head + "faults: [kill 4 at 5s]\n", "f.yaml:4:10: faults[0]: there is no node 4 (all, leader, follower, a node from 1 to 3, or n-1, n-2, n-3)"},
		"a process that is not":             {head + "faults: [kill m-1 at 5s]\n", `f.yaml:4:10: faults[0]: no process is named "m-1" (all, leader, follower, a node from 1 to 3, or n-1, n-2, n-3)`},
		"a leader nobody tells":             {head + "faults: [kill leader at 5s]\n", "f.yaml:4:10: faults[0]: driver served does not tell which node leads (the number of a node, or all)"},
		"after the end":                     {head + "faults: [kill 1 at 30s]\n", "f.yaml:4:10: faults[0]: begins after the measured window of 30s has ended (at, a shorter time)"},
		"too many":                          {head + "faults: [restart 1 at 0s every 1ms]\n", "f.yaml:4:9: faults: come to more than 1000 in a window of 30s (every: more)"},
		"servers of others":                 {"weir: 1\nsystem: {driver: served}\nfaults: [kill 1 at 5s]\n", "f.yaml:3:9: faults: needs servers that a recipe starts, and system.start is none (system.start: process)"},
		"a number for a mapping":            {head + "faults: 5\n", `f.yaml:4:9: faults: "5" is not a fault (` + fault.Form + ")"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := Resolve(served(t, x.file))
			got := ""
			if err == nil {
				for line := range strings.Lines(string(all[0].YAML())) {
					if strings.HasPrefix(line, "faults") {
						got = strings.TrimSpace(line)
					}
				}
			} else if f := Faults(nil); errors.As(err, &f) {
				got = f[0].Error()
			} else {
				t.Fatal(err)
			}
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
