package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/netpartition"
	"github.com/weirmq/weir/result"
)

// cuttable skips the test if weir cannot partition nodes that share this machine's network.
func cuttable(t *testing.T) {
	t.Helper()
	self := must.Get(os.Executable())(t)
	if err := netpartition.Check(t.Context(), self); err != nil {
		needs.Host(t, "cuts", err)
	}
}

// groupsOf are the control groups of the processes of servers below a folder.
func groupsOf(t *testing.T, home string) (groups []string) {
	t.Helper()
	all := must.Get(filepath.Glob("/proc/[0-9]*/cgroup"))(t)
	root := must.Get(netpartition.Path(""))(t)
	for _, path := range all {
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")) // it may be gone meanwhile
		b, _ := os.ReadFile(path)
		for line := range strings.Lines(string(b)) {
			group, is := strings.CutPrefix(strings.TrimSpace(line), "0::")
			if _, own, below := strings.Cut(group, "/weir-nats-"); is && below && strings.Contains(string(command), home) {
				if at := filepath.Join(root, "weir-nats-"+own); !slices.Contains(groups, at) {
					groups = append(groups, at)
				}
			}
		}
	}
	slices.Sort(groups)
	return groups
}

// leaderless reports whether a fault was not done because no node led when it was due.
func leaderless(f result.Fault) bool { return strings.Contains(f.Error, "asking which node leads: ") }

// The leader is partitioned from the other nodes on its host, the next leader from the clients on other
// hosts, and then all nodes are. No confirmed message may be lost, and nothing may be left behind. The
// leader after a partition is up to the servers: a follower calls a vote after 4 to 9 s, and the
// partitioned one may win again.
func TestHostsCutOffLeader(t *testing.T) {
	slow(t)
	cuttable(t)
	c := startFleet(t, "a", "b", "bk")
	_, home := c.server("bk", "broker,faults")
	c.agent("a")
	c.agent("b")
	run := c.startedOn("bk", "r", fromAToB, "--nodes", "3", "--replication", "3", "--warmup", "1s", "--measure", "14s", "--drain", "60s",
		"--fault", "cut leader from nodes at 1s for 5s", "--fault", "cut leader from clients at 9s for 500ms", "--fault", "cut all from clients at 11s for 1s")
	run.until(t, "bk: cut server-")
	groups := groupsOf(t, home)
	r := c.ended(run, OK, Invalid, Refused, Unreachable, Lost, Failed) // a new leader may deliver again
	if len(groups) != 3 {
		t.Errorf("the servers are in the control groups %q; want one for each node", groups)
	}
	if m := r.MessagesAll; m.Lost != 0 || m.Corrupted != 0 {
		t.Errorf("lost %d, corrupted %d", m.Lost, m.Corrupted)
	}
	if len(r.Faults) != 3 {
		t.Fatalf("faults %+v", r.Faults)
	}
	led := true // on a busy host the nodes themselves may lose their leader, or not answer
	for _, f := range r.Faults {
		if leaderless(f) {
			led = false
			continue
		}
		if f.Do != "cut" || f.Error != "" || len(f.Processes) == 0 || f.UndoneNS == nil || f.Means != netpartition.Means || !slices.Equal(f.Agents, []string{"bk"}) {
			t.Errorf("%+v", f)
		}
	}
	if failed := strings.Contains(run.stderr.String(), "exit code 1:"); failed == led {
		t.Errorf("each fault was done: %v; exit code 1: %v", led, failed)
	}
	nodes, clients := r.Faults[0], r.Faults[2]
	// If the host stalled before the first fault, failed messages are the only effect.
	if e := nodes.Effect; led && (e == nil || e.Failed == 0 && (e.Unconfirmed == nil || e.Unconfirmed.ToNS-e.Unconfirmed.FromNS < int64(time.Second))) {
		t.Errorf("what followed the cut from nodes: %+v", nodes.Effect)
	}
	if e := clients.Effect; led && (e == nil || e.Failed == 0 && (e.Unconfirmed == nil || e.Undelivered == nil || e.Unconfirmed.ToNS-e.Unconfirmed.FromNS < int64(500*time.Millisecond))) {
		t.Errorf("what followed the cut from clients: %+v", clients.Effect)
	}
	c.gone(home, groups...)
}

// The agent is killed while all its nodes are partitioned.
func TestHostsCutsEndWithTheirAgent(t *testing.T) {
	slow(t)
	cuttable(t)
	c := startFleet(t, "a", "b", "bk")
	bk, home := c.server("bk", "broker,faults")
	c.agent("a")
	c.agent("b")
	run := c.startedOn("bk", "r", fromAToB, "--nodes", "3", "--replication", "3", "--warmup", "500ms", "--measure", "4s", "--drain", "3s", "--fault", "cut all at 100ms for 60s")
	run.until(t, "bk: cut server-1, server-2, server-3 from all")
	groups := groupsOf(t, home)
	if len(groups) != 3 {
		t.Errorf("the servers are in the control groups %q; want one for each node", groups)
	}
	bk.signal(t, syscall.SIGKILL)
	c.gone(home, groups...)
}

// Before anything starts, if the agent finds no control groups, as in a container without them.
func TestHostsRefuseACut(t *testing.T) {
	slow(t)
	cuttable(t)
	c := startFleet(t, "a", "b", "bk")
	path := must.Get(netpartition.Path(""))(t)
	mount := path // the agent's own group, or one above
	for !mounted(t, mount) {
		mount = filepath.Dir(mount)
	}
	cache := must.Get(broker.CacheDir(os.LookupEnv))(t)
	script := fmt.Sprintf(`umount -l %s && exec "$0" "$@"`, mount)
	c.start("bk", "agent bk", []string{"unshare", "--mount", "sh", "-c", script, c.weir, "agent", "--name", "bk", "--allow", "broker,faults", "--bind", c.hosts.Addr("bk")},
		"WEIR_JOIN="+c.url, "WEIR_CACHE="+cache)
	c.agent("a")
	c.agent("b")
	run := c.startedOn("bk", "r", fromAToB, "--nodes", "3", "--measure", "3s", "--fault", "cut 1 from nodes at 1s")
	want := "agent bk: not allowed: cut: " + netpartition.ErrMissing.Error() + ": "
	if code := run.end(t); code != int(Usage) || !strings.Contains(run.stderr.String(), want) || strings.Contains(run.stderr.String(), "started jetstream") {
		t.Errorf("exit code %d; want %d and %q\n%s", code, Usage, want, &run.stderr)
	}
}

// mounted reports whether a path is that of a mount.
func mounted(t *testing.T, path string) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil || path == "/" {
		t.Fatalf("looking for the mount of control groups: %v", err)
	}
	return strings.Contains(string(b), " "+path+" cgroup2 ")
}
