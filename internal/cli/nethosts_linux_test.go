package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// netHosts are network namespaces on one bridge, which is in a namespace of its own.
type netHosts struct {
	t      testing.TB
	bridge *os.File
	hosts  map[string]*netHost
}

type netHost struct {
	space *os.File
	addr  string
	port  string // of the bridge
}

// newNetHosts creates hosts with these names, at most 200: the first has the address 10.77.0.1, the next
// 10.77.0.2, and so on. Nothing outside can reach them. It skips the test in short runs, and if this
// machine does not permit it. The hosts are removed at the end of the test.
func newNetHosts(t testing.TB, names ...string) *netHosts {
	t.Helper()
	needs.Time(t)
	if _, err := exec.LookPath("ip"); err != nil {
		needs.Host(t, "hosts", "network namespaces as hosts need the command ip (package iproute2)")
	}
	h := &netHosts{t: t, hosts: map[string]*netHost{}}
	var err error
	if h.bridge, err = newSpace(); errors.Is(err, unix.EPERM) {
		needs.Host(t, "hosts", err)
	}
	if err != nil {
		needs.Host(t, "hosts", err)
	}
	t.Cleanup(h.close)
	// Whether a bridge and a pair of veths can be made depends on the kernel's modules.
	if err := ip(h.bridge, "link add br0 type bridge forward_delay 0"); err != nil {
		needs.Host(t, "hosts", err)
	}
	must.Do(t, ip(h.bridge, "link set br0 up"))
	for i, name := range names {
		x := &netHost{addr: fmt.Sprintf("10.77.0.%d", i+1), port: fmt.Sprintf("port%d", i+1)}
		if x.space, err = newSpace(); err != nil {
			t.Fatalf("making the namespace of host %s: %v", name, err)
		}
		h.hosts[name] = x
		for _, step := range []struct {
			in   *os.File
			args string
		}{
			{h.bridge, fmt.Sprintf("link add %s type veth peer name eth0 netns /proc/%d/fd/%d", x.port, os.Getpid(), x.space.Fd())},
			{h.bridge, fmt.Sprintf("link set %s master br0 up", x.port)},
			{x.space, fmt.Sprintf("addr add %s/24 dev eth0", x.addr)},
			{x.space, "link set lo up"},
			{x.space, "link set eth0 up"},
		} {
			if err := ip(step.in, step.args); err != nil {
				t.Fatalf("making host %s: %v", name, err)
			}
		}
	}
	return h
}

// Addr is a host's address.
func (h *netHosts) Addr(name string) string { return h.host(name).addr }

func (h *netHosts) host(name string) *netHost {
	h.t.Helper()
	x := h.hosts[name]
	if x == nil {
		h.t.Fatalf("there is no host %s", name)
	}
	return x
}

// Cut disconnects a host silently: packets sent meanwhile are lost.
func (h *netHosts) Cut(name string) { h.link(name, "down") }

// Mend reconnects it.
func (h *netHosts) Mend(name string) { h.link(name, "up") }

func (h *netHosts) link(name, state string) {
	h.t.Helper()
	// The bridge's end of the pair: the host keeps its address and routes.
	if err := ip(h.bridge, fmt.Sprintf("link set %s %s", h.host(name).port, state)); err != nil {
		h.t.Errorf("cable of host %s: %v", name, err)
	}
}

// Start starts a command on a host. The caller waits for it. It is killed if this process ends first.
func (h *netHosts) Start(name string, cmd *exec.Cmd) error {
	h.t.Helper()
	space := h.host(name).space
	return startTied(cmd, func() error {
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering host %s: %w", name, err)
		}
		return nil
	})
}

// startTied starts a command on a thread of its own, after enter has prepared that thread. The caller waits
// for the command. It is killed if this process ends first.
func startTied(cmd *exec.Cmd, enter func() error) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := enter(); err != nil {
			started <- err
			return
		}
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		// Pdeathsig refers to the end of this thread, not of the process: the thread stays as long as the
		// child.
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
		err := cmd.Start()
		started <- err
		if err == nil {
			var info unix.Siginfo
			for { // WNOWAIT leaves the child to be waited for
				if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
					return
				}
			}
		}
	}()
	return <-started
}

func (h *netHosts) close() {
	for _, x := range h.hosts {
		if x.space != nil {
			_ = x.space.Close()
		}
	}
	_ = h.bridge.Close()
}

// newSpace makes a network namespace.
func newSpace() (space *os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // see Start
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			space, err = os.Open("/proc/thread-self/ns/net")
		}
	}()
	<-done
	return space, err
}

// ip runs the command ip in a namespace.
func ip(space *os.File, args string) error {
	_, err := runIn(space, append([]string{"ip"}, strings.Fields(args)...)...)
	return err
}

// runIn runs a command in a namespace.
func runIn(space *os.File, args ...string) (out string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // see Start
		if err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			return
		}
		var b bytes.Buffer
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = &b, &b
		err = cmd.Run()
		out = b.String()
	}()
	<-done
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(out))
	}
	return out, err
}
