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

// hostVariable names the descriptor of the host's network namespace to a process that
// Enter has started again.
const hostVariable = "WEIR_INTERNAL_HOST_NETWORK"

// tunDevice is where TUN devices come from.
const tunDevice = "/dev/net/tun"

// Check refuses, with ErrMissing and what is needed, a host that lends weir no network
// namespace or no TUN device. It tries both and leaves nothing behind.
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

// missing says what a host does not lend, and how to have it.
func missing(what string, err error, need string) error {
	return fmt.Errorf("%w: making %s: %w (%s)", ErrMissing, what, err, need)
}

// apart calls f on a thread of its own, which ends with it, with the namespaces that f enters.
func apart(f func() error) error {
	done := make(chan error)
	go thread(func() { done <- f() })
	return <-done
}

// thread calls f on a thread that ends with it. That is never the first one of the process:
// Go keeps it, and /proc/self tells of its namespaces.
func thread(f func()) {
	runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
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

// hostSpace is a descriptor of the namespace that the process was in before Enter; 0: Enter
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

// Enter replaces this process by one of the same arguments and environment, in a new
// network namespace with nothing but a loopback interface. That is the clients' side. It
// returns only with an error. Nothing may be open that must outlive it but the standard
// streams; stdin, where it is not nil, is what the new process reads there.
func Enter(self string, stdin []byte) error {
	runtime.LockOSThread() // the thread that executes takes its namespace along
	defer runtime.UnlockOSThread()
	host, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY, 0) // stays open
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

// feed makes text what the process reads on its standard input.
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
	return unix.Dup3(fd, 0, 0) // Dup2 is not on every processor
}

// OnHost calls f in the host's own network namespace, so that what f listens at is reached
// from there. Outside of a process that Enter started it only calls f.
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

// within calls f in the namespace at a path.
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

// A space is a new network namespace with a thread in it, for as long as the process lives.
type space struct {
	path  string // as other processes name it
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

// openTUN makes a TUN device in the namespace of the calling thread. It is gone when the
// descriptor is closed.
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

// deviceQueue is how many packets wait in a TUN device for the link to read them.
const deviceQueue = 10_000

// device makes a TUN device with an address, and that of its other end.
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
		_ = unix.IoctlIfreq(s, unix.SIOCSIFTXQLEN, r) // a root of a user namespace may not: the kernel's 500 stay
		return nil
	})
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// loopback puts up the loopback interface of the calling thread's namespace.
func loopback() error {
	return control("lo", func(s int, r *unix.Ifreq) error {
		r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r); err != nil {
			return fmt.Errorf("putting up the loopback interface: %w", err)
		}
		return nil
	})
}

// control calls f with a socket for requests about an interface of the calling thread's namespace.
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

// dropped is how many packets a device dropped because the link did not read them soon enough.
func dropped(name string) int64 {
	b, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		device, figures, ok := strings.Cut(line, ":")
		// Of the sending side: bytes, packets, errors, dropped.
		if fields := strings.Fields(figures); ok && strings.TrimSpace(device) == name && len(fields) > 11 {
			n, _ := strconv.ParseInt(fields[11], 10, 64)
			return n
		}
	}
	return 0
}
