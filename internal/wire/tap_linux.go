package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/cgroup"
)

// need says what a host must have, for messages.
const need = "run weir as root, on Linux 5.8 or later with CONFIG_CGROUP_BPF; in a container with CAP_BPF and CAP_NET_ADMIN"

// mostConns is the largest number of connections that are watched.
const mostConns = 1 << 16

// A tap sees the TCP segments of this process's sockets. Its programs are attached to the process's
// control group, see the sockets of all processes in it and below, and pass everything; they record
// only sockets that scan found in this process. They end with the process.
type tap struct {
	on, drops, conns, ring *ebpf.Map
	reader                 *ringbuf.Reader
	record                 ringbuf.Record
	programs               []*ebpf.Program   // sending, receiving
	group                  *os.File          // the control group
	links                  []*link.RawLink   // of the programs to it, while recording
	known                  map[uint64]uint32 // cookies to connection numbers; other sockets to noConn
	beside                 int               // connections to this host's own addresses
	closes                 []func() error
}

const noConn = ^uint32(0)

func openTap() (_ *tap, err error) {
	t := &tap{known: map[uint64]uint32{}}
	defer func() {
		if err != nil {
			_ = t.close()
		}
	}()
	missing := func(what string, err error) error {
		return fmt.Errorf("%w: %s: %w (%s)", ErrMissing, what, err, need)
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, missing("making room for eBPF programs", err)
	}
	for _, m := range []struct {
		into **ebpf.Map
		spec ebpf.MapSpec
	}{
		{&t.on, ebpf.MapSpec{Name: "weir_wire_on", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}},
		{&t.drops, ebpf.MapSpec{Name: "weir_wire_lost", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}},
		{&t.conns, ebpf.MapSpec{Name: "weir_wire_conns", Type: ebpf.Hash, KeySize: 8, ValueSize: 4, MaxEntries: mostConns, Flags: unix.BPF_F_NO_PREALLOC}},
		{&t.ring, ebpf.MapSpec{Name: "weir_wire_ring", Type: ebpf.RingBuf, MaxEntries: ringBytes}},
	} {
		if *m.into, err = ebpf.NewMap(&m.spec); err != nil {
			return nil, missing("making an eBPF map", err)
		}
		t.closes = append(t.closes, (*m.into).Close)
	}
	if t.reader, err = ringbuf.NewReader(t.ring); err != nil {
		return nil, missing("reading an eBPF map", err)
	}
	t.closes = append(t.closes, t.reader.Close)
	path, err := cgroup.Path("")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if t.group, err = os.Open(path); err != nil {
		return nil, missing("opening the control group", err)
	}
	t.closes = append(t.closes, t.group.Close)
	for _, out := range []bool{true, false} {
		kind := ebpf.AttachCGroupInetIngress
		if out {
			kind = ebpf.AttachCGroupInetEgress
		}
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: "weir_wire", Type: ebpf.CGroupSKB, AttachType: kind, License: "Apache-2.0",
			Instructions: program(out, t.on.FD(), t.drops.FD(), t.conns.FD(), t.ring.FD()),
		})
		if err != nil {
			return nil, missing("loading an eBPF program", err)
		}
		t.programs, t.closes = append(t.programs, p), append(t.closes, p.Close)
	}
	t.closes = append(t.closes, t.detach)
	if err := errors.Join(t.attach(), t.detach()); err != nil {
		return nil, missing("attaching an eBPF program", err)
	}
	return t, nil
}

// enable starts and stops recording. The programs are attached only meanwhile, since every packet of the
// control group passes them.
func (t *tap) enable(on bool) error {
	if !on {
		return errors.Join(t.on.Put(uint32(0), uint64(0)), t.detach())
	}
	return errors.Join(t.on.Put(uint32(0), uint64(1)), t.attach())
}

func (t *tap) attach() error {
	for i, kind := range []ebpf.AttachType{ebpf.AttachCGroupInetEgress, ebpf.AttachCGroupInetIngress} {
		// Not link.AttachCgroup: on an old kernel its attachment outlives this process.
		l, err := link.AttachRawLink(link.RawLinkOptions{Target: int(t.group.Fd()), Program: t.programs[i], Attach: kind})
		if err != nil {
			return err
		}
		t.links = append(t.links, l)
	}
	return nil
}

func (t *tap) detach() error {
	var errs []error
	for _, l := range t.links {
		errs = append(errs, l.Close())
	}
	t.links = nil
	return errors.Join(errs...)
}

// eachSocket calls visit for each socket of this process.
func eachSocket(visit func(fd int, cookie uint64)) {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil {
			if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE); err == nil { // else it is not a socket
				visit(fd, cookie)
			}
		}
	}
}

// Opened returns the sockets that this process has now.
func Opened() (all Sockets) {
	eachSocket(func(_ int, cookie uint64) { all = append(all, cookie) })
	return all
}

// ignore makes scan pass over sockets.
func (t *tap) ignore(all Sockets) {
	for _, cookie := range all {
		t.known[cookie] = noConn
	}
}

// scan looks for connected TCP sockets of this process that it does not know, and returns how many
// it knows.
func (t *tap) scan() int {
	eachSocket(func(fd int, cookie uint64) {
		if _, ok := t.known[cookie]; ok {
			return
		}
		if protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil || protocol != unix.IPPROTO_TCP {
			t.known[cookie] = noConn
			return
		}
		peer, err := unix.Getpeername(fd)
		if err != nil {
			return // it listens, or is not connected yet
		}
		n := uint32(t.found())
		if n < mostConns && t.conns.Put(cookie, n) == nil {
			t.known[cookie] = n
			if own, err := unix.Getsockname(fd); err == nil && address(own) == address(peer) {
				t.beside++
			}
		}
	})
	return t.found()
}

// address returns the IP address of a socket's end.
func address(of unix.Sockaddr) netip.Addr {
	switch a := of.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(a.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(a.Addr).Unmap()
	}
	return netip.Addr{}
}

func (t *tap) found() (n int) {
	for _, c := range t.known {
		if c != noConn {
			n++
		}
	}
	return n
}

// read calls visit for each record that is in the ring buffer now. visit must not keep the payload.
func (t *tap) read(visit func(*segment)) error {
	var s segment
	for t.reader.AvailableBytes() > 0 {
		t.reader.SetDeadline(time.Now())
		if err := t.reader.ReadInto(&t.record); errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading kernel instants: %w", err)
		}
		b := t.record.RawSample
		if len(b) < headSize {
			continue
		}
		order := binary.NativeEndian
		s = segment{
			at: int64(order.Uint64(b[headTime:])), conn: order.Uint32(b[headConn:]), out: order.Uint32(b[headOut:]) == 1,
			seq: order.Uint32(b[headSeq:]), length: order.Uint32(b[headLength:]),
		}
		s.payload = b[headSize:min(len(b), headSize+int(order.Uint32(b[headCopied:])))]
		visit(&s)
	}
	return nil
}

// lost returns how many segments found no room in the ring buffer.
func (t *tap) lost() (n uint64) {
	_ = t.drops.Lookup(uint32(0), &n)
	return n
}

func (t *tap) close() error {
	var errs []error
	for i := len(t.closes) - 1; i >= 0; i-- {
		errs = append(errs, t.closes[i]())
	}
	t.closes = nil
	return errors.Join(errs...)
}

// threadTime returns the processor time that this thread has used, ns.
func threadTime() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return t.Nano()
}

// processorTime returns the processor time that this process has used, ns.
func processorTime() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
