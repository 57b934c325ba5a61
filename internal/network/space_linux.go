package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// hostVariable is the environment variable with the descriptor of the host's network namespace, for a
// process that Enter re-executed.
const hostVariable = "WEIR_INTERNAL_HOST_NETWORK"

// tunDevice is the device file for creating TUN devices.
const tunDevice = "/dev/net/tun"

// Check returns ErrMissing, with what is missing, if the host does not permit a network namespace or a
// TUN device. It tries both and leaves nothing behind.
func Check() error {
	return apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return missing("a network namespace", err, "run weir as root, or as a whole by unshare --map-root-user, or in a container with CAP_SYS_ADMIN")
		}
		fd, err := openTUN("weir-try")
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
}

// missing describes what the host does not permit, and the fix.
func missing(what string, err error, need string) error {
	return fmt.Errorf("%w: making %s: %w (%s)", ErrMissing, what, err, need)
}

// apart calls f on a new thread, which ends afterwards together with the namespaces that f enters.
func apart(f func() error) error {
	done := make(chan error)
	go thread(func() { done <- f() })
	return <-done
}

// thread calls f on a thread that ends with it. It is never the process's first thread, because Go
// keeps that one, and /proc/self shows its namespaces.
func thread(f func()) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	if unix.Gettid() != os.Getpid() {
		f()
		return
	}
	defer runtime.UnlockOSThread()
	over := make(chan struct{})
	go func() {
		defer close(over)
		thread(f)
	}()
	<-over
}

// Inside reports whether this process is in the namespace of the clients.
func Inside() bool { return hostSpace() != 0 }

// hostSpace returns a descriptor of the namespace that the process was in before Enter, or 0 if Enter
// did not start it.
func hostSpace() int {
	fd, err := strconv.Atoi(os.Getenv(hostVariable))
	if err != nil || fd < 3 {
		return 0
	}
	if kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE); err != nil || kind != unix.CLONE_NEWNET {
		return 0
	}
	unix.CloseOnExec(fd)
	return fd
}

// Enter re-executes this process with the same arguments and environment in a new network namespace
// that has only a loopback interface: the clients' side. It returns only with an error. Nothing that
// must survive may be open except the standard streams. If stdin is not nil, the new process reads it
// as standard input.
func Enter(self string, stdin []byte) error {
	runtime.LockOSThread() // the thread that calls exec keeps its namespace
	defer runtime.UnlockOSThread()
	host, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY, 0) // left open
	if err != nil {
		return fmt.Errorf("entering a network namespace: %w", err)
	}
	if stdin != nil {
		if err := feed(stdin); err != nil {
			return fmt.Errorf("entering a network namespace: %w", err)
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return missing("a network namespace", err, "run weir as root")
	}
	if err := loopback(); err != nil {
		return err
	}
	environ := append(os.Environ(), hostVariable+"="+strconv.Itoa(host))
	return fmt.Errorf("entering a network namespace: %w", syscall.Exec(self, os.Args, environ))
}

// feed makes text the standard input of the process.
func feed(text []byte) error {
	fd, err := unix.MemfdCreate("stdin", 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "stdin")
	if _, err := f.Write(text); err != nil {
		return err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return err
	}
	return unix.Dup3(fd, 0, 0) // Dup2 does not exist on every architecture
}

// OnHost calls f in the host's own network namespace, so that f's listeners can be reached from there.
// In a process that Enter did not start it just calls f.
func OnHost(f func() error) error {
	host := hostSpace()
	if host == 0 {
		return f()
	}
	return apart(func() error {
		if err := unix.Setns(host, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("going back to the host's network: %w", err)
		}
		return f()
	})
}

// within calls f in the network namespace at path.
func within(path string, f func() error) error {
	return apart(func() error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("entering the servers' network: %w", err)
		}
		defer func() { _ = unix.Close(fd) }()
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering the servers' network: %w", err)
		}
		return f()
	})
}

// A space is a new network namespace with a thread in it, which lives as long as the process.
type space struct {
	path  string // path for other processes
	calls chan func()
}

func newSpace() (*space, error) {
	s := &space{calls: make(chan func())}
	made := make(chan error)
	go thread(func() {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- fmt.Errorf("making a network namespace: %w", err)
			return
		}
		s.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		made <- nil
		for f := range s.calls {
			f()
		}
	})
	return s, <-made
}

// do calls f in the namespace.
func (s *space) do(f func() error) (err error) {
	done := make(chan struct{})
	s.calls <- func() {
		defer close(done)
		err = f()
	}
	<-done
	return err
}

// openTUN creates a TUN device in the calling thread's namespace. Closing the descriptor removes it.
func openTUN(name string) (int, error) {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, missing("a TUN device", err, "modprobe tun; in a container also --device "+tunDevice+" and CAP_NET_ADMIN")
	}
	r, err := unix.NewIfreq(name)
	if err == nil {
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, missing("a TUN device", err, "run weir as root, or in a container with CAP_NET_ADMIN")
	}
	return fd, nil
}

// deviceQueue is how many packets a TUN device queues for the link.
const deviceQueue = 10_000

// device creates a TUN device with its address and that of its peer.
func device(name string, address, peer netip.Addr) (int, error) {
	fd, err := openTUN(name)
	if err != nil {
		return -1, err
	}
	err = control(name, func(s int, r *unix.Ifreq) error {
		a, p := address.As4(), peer.As4()
		for _, x := range []struct {
			what string
			op   uint
			set  func() error
		}{
			{"address", unix.SIOCSIFADDR, func() error { return r.SetInet4Addr(a[:]) }},
			{"peer", unix.SIOCSIFDSTADDR, func() error { return r.SetInet4Addr(p[:]) }},
			{"MTU", unix.SIOCSIFMTU, func() error { r.SetUint32(mtu); return nil }},
			{"state", unix.SIOCSIFFLAGS, func() error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }},
		} {
			if err := errors.Join(x.set(), unix.IoctlIfreq(s, x.op, r)); err != nil {
				return fmt.Errorf("setting the %s of %s: %w", x.what, name, err)
			}
		}
		r.SetUint32(deviceQueue)
		_ = unix.IoctlIfreq(s, unix.SIOCSIFTXQLEN, r) // not in a user namespace: the kernel's 500 stay
		return nil
	})
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// loopback brings up the loopback interface of the calling thread's namespace.
func loopback() error {
	return control("lo", func(s int, r *unix.Ifreq) error {
		r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r); err != nil {
			return fmt.Errorf("putting up the loopback interface: %w", err)
		}
		return nil
	})
}

// control calls f with a socket for interface requests in the calling thread's namespace.
func control(name string, f func(socket int, r *unix.Ifreq) error) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	return f(s, r)
}

// dropped returns how many packets a device dropped because the link did not read them in time.
func dropped(name string) int64 {
	b, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		device, figures, ok := strings.Cut(line, ":")
		// Sending side: bytes, packets, errors, dropped.
		if fields := strings.Fields(figures); ok && strings.TrimSpace(device) == name && len(fields) > 11 {
			n, _ := strconv.ParseInt(fields[11], 10, 64)
			return n
		}
	}
	return 0
}
