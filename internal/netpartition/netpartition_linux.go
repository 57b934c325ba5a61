package netpartition

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"github.com/weirmq/weir/internal/cgroup"
)

// Requirements, for messages.
const (
	needGroups = "run weir as root, and in a container with a cgroup file system that it may write to"
	needBPF    = "run weir as root, on Linux 5.8 or later with CONFIG_CGROUP_BPF; in a container with CAP_BPF and CAP_NET_ADMIN"
)

// Path returns the path at which Make creates a control group with that name, below that of this
// process.
func Path(name string) (string, error) {
	p, err := cgroup.Path(name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return p, nil
}

// folder returns the group of a node within the group at path; 0 is the group for what all nodes
// share.
func folder(path string, node int) string {
	if node == 0 {
		return filepath.Join(path, "shared")
	}
	return filepath.Join(path, strconv.Itoa(node))
}

// Make creates a control group that contains one for each node, and one for what all share.
func Make(path string, nodes int) error {
	if nodes > MostNodes {
		return fmt.Errorf("making control groups: for %d nodes at most", MostNodes)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return missing("making a control group", err, needGroups)
	}
	for n := range nodes + 1 {
		if err := os.Mkdir(folder(path, n), 0o755); err != nil {
			return missing("making a control group", err, needGroups)
		}
	}
	return nil
}

// Open opens the group of a node so that a process can start in it; 0 is the group for what all nodes
// share.
func Open(path string, node int) (*os.File, error) {
	return os.OpenFile(folder(path, node), os.O_RDONLY|syscall.O_DIRECTORY, 0)
}

// enter moves this process into the group of node 1.
func enter(path string) error {
	err := os.WriteFile(filepath.Join(folder(path, 1), "cgroup.procs"), []byte("0"), 0)
	if err != nil {
		return missing("entering a control group", err, needGroups)
	}
	return nil
}

// A Cutter partitions the nodes of a control group. Its methods are safe for concurrent use.
type Cutter struct {
	rules *ebpf.Map

	mu     sync.Mutex
	closes []func() error
}

// New attaches programs to the node groups within the group at path. Initially they pass everything.
func New(path string, nodes int) (_ *Cutter, err error) {
	c := &Cutter{}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, missing("making room for eBPF programs", err, needBPF)
	}
	c.rules, err = ebpf.NewMap(&ebpf.MapSpec{Name: "weir_rules", Type: ebpf.Array, KeySize: 4, ValueSize: 8 * (shared + 1), MaxEntries: 1})
	if err != nil {
		return nil, missing("making an eBPF map", err, needBPF)
	}
	c.closes = append(c.closes, c.rules.Close)
	groups, err := ebpf.NewMap(&ebpf.MapSpec{Name: "weir_groups", Type: ebpf.Hash, KeySize: 8, ValueSize: 4, MaxEntries: MostNodes + 1})
	if err != nil {
		return nil, missing("making an eBPF map", err, needBPF)
	}
	c.closes = append(c.closes, groups.Close)
	for n := range nodes + 1 {
		info, err := os.Stat(folder(path, n))
		if err != nil {
			return nil, missing("looking at a control group", err, needGroups)
		}
		number := uint32(n)
		if n == 0 {
			number = shared
		}
		if err := groups.Put(info.Sys().(*syscall.Stat_t).Ino, number); err != nil {
			return nil, missing("writing an eBPF map", err, needBPF)
		}
	}
	for n := 1; n <= nodes; n++ {
		for _, sends := range []bool{false, true} {
			if err := c.attach(path, n, sends, groups); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// attach attaches a program to a node's group for as long as this process holds it open.
func (c *Cutter) attach(path string, node int, sends bool, groups *ebpf.Map) error {
	kind := ebpf.AttachCGroupInetIngress
	if sends {
		kind = ebpf.AttachCGroupInetEgress
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weir_cut", Type: ebpf.CGroupSKB, AttachType: kind, License: "Apache-2.0",
		Instructions: program(node, sends, c.rules.FD(), groups.FD()),
	})
	if err != nil {
		return missing("loading an eBPF program", err, needBPF)
	}
	c.closes = append(c.closes, p.Close)
	at, err := Open(path, node)
	if err != nil {
		return missing("opening a control group", err, needGroups)
	}
	defer func() { _ = at.Close() }()
	// Not link.AttachCgroup: on an old kernel its attachment outlives this process.
	l, err := link.AttachRawLink(link.RawLinkOptions{Target: int(at.Fd()), Program: p, Attach: kind})
	if err != nil {
		return missing("attaching an eBPF program", err, needBPF)
	}
	c.closes = append(c.closes, l.Close)
	return nil
}

// Part drops all packets between the nodes of each pair, and passes all others. 0 stands for the
// clients: all processes in none of the groups, on this host and on others.
func (c *Cutter) Part(pairs [][2]int) error {
	r, err := rowsOf(pairs)
	if err != nil {
		return err
	}
	if err := c.rules.Put(uint32(0), r[:]); err != nil {
		return fmt.Errorf("cutting nodes off: %w", err)
	}
	return nil
}

// Close ends all partitions.
func (c *Cutter) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for i := len(c.closes) - 1; i >= 0; i-- {
		errs = append(errs, c.closes[i]())
	}
	c.closes = nil
	return errors.Join(errs...)
}
