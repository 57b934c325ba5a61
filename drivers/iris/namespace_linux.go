package iris

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/userfile"
)

// within calls f in the network namespace of the process whose number is in file. Sockets that f
// creates stay in it.
func within(file string, f func() error) error {
	b, err := userfile.Read(file, 32)
	if err != nil {
		return fmt.Errorf("%w: reading the number of a process: %w", driver.ErrUnreachable, err)
	}
	pid, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 31)
	if err != nil {
		return fmt.Errorf("%w: %s does not hold the number of a process", driver.ErrUnsupported, file)
	}
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ended <- inside(int(pid), f)
	}()
	return <-ended
}

// inside calls f in a process's network namespace. The thread stays there.
func inside(pid int, f func() error) error {
	space, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%w: the network namespace of process %d: %w", driver.ErrUnreachable, pid, err)
	}
	defer func() { _ = unix.Close(space) }()
	if err := unix.Setns(space, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("%w: entering the network namespace of process %d takes root: %w", driver.ErrUnsupported, pid, err)
	}
	return f()
}
