package proctree

import (
	"os"
	"os/exec"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

func TestAllListsProcesses(t *testing.T) {
	root := fstest.MapFS{
		"proc/1/stat":     {Data: []byte("1 (init) S 0 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5 0 0")},
		"proc/20/stat":    {Data: []byte("20 (a ) R (b) Z 1 1 1 0 -1 4194560 1 2 3 4 1 2 3 4 20 0 1 0 77 0 0")},
		"proc/21/stat":    {Data: []byte("21 (cut) S 20")},
		"proc/22/stat":    {Data: []byte("22 (torn")},
		"proc/23/stat":    {Data: []byte("23 (odd) S x 1 1")},
		"proc/24/nothing": {},
		"proc/meminfo":    {Data: []byte("MemTotal: 1 kB")},
	}
	want := map[int]Stat{
		1:  {Pid: 1, State: 'S', Start: 5, User: 40, System: 60, MajorFaults: 7},
		20: {Pid: 20, Parent: 1, State: 'Z', Start: 77, User: 4, System: 6, MajorFaults: 7},
		21: {Pid: 21, Parent: 20, State: 'S'},
	}
	all := All(root)
	if d := cmp.Diff(want, all); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !all[20].Dead() || all[1].Dead() {
		t.Error("the dead and the living are mixed up")
	}
	if got := All(fstest.MapFS{}); len(got) != 0 {
		t.Errorf("without /proc: %v", got)
	}
}

func TestBelowIsTheTree(t *testing.T) {
	all := map[int]Stat{}
	for pid, parent := range map[int]int{2: 1, 9: 2, 3: 2, 4: 3, 5: 4, 6: 1, 7: 8, 8: 7} {
		all[pid] = Stat{Pid: pid, Parent: parent}
	}
	if d := cmp.Diff([]int{3, 9, 4, 5}, Below(all, 2)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int{8, 7}, Below(all, 7)); d != "" { // who are each other's parents
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestAChildIsFound(t *testing.T) {
	if _, ok := One(Host(), os.Getpid()); !ok {
		needs.Host(t, "proc", "no process in /proc")
	}
	c := exec.Command("sleep", "60")
	must.Do(t, c.Start())
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	found := Below(All(Host()), os.Getpid())
	if len(found) != 1 || found[0] != c.Process.Pid {
		t.Errorf("below this process are %v; want %d", found, c.Process.Pid)
	}
}
