package host

import (
	"context"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// observe queries macOS by sysctl; everything else is unknown. Nothing is sampled.
func observe(_ context.Context, p CheckTarget) observed {
	o := observed{work: disk(p.Work), temp: disk(p.Temp)}
	sysctl := func(name string) *uint64 {
		v, err := unix.SysctlUint32(name)
		if err != nil {
			return nil
		}
		return new(uint64(v))
	}
	if cores := sysctl("hw.physicalcpu"); cores != nil {
		o.physical = new(int(*cores))
	}
	o.portLow, o.portHigh = sysctl("net.inet.ip.portrange.first"), sysctl("net.inet.ip.portrange.last")
	if o.portLow == nil || o.portHigh == nil || *o.portHigh < *o.portLow {
		o.portLow, o.portHigh = nil, nil
	}
	o.somaxconn = sysctl("kern.ipc.somaxconn")
	// struct loadavg of sys/resource.h: three uint32 in units of a long that
	// follows at the next multiple of its size.
	if b, err := unix.SysctlRaw("vm.loadavg"); err == nil && len(b) >= 24 {
		if scale := binary.NativeEndian.Uint64(b[16:]); scale > 0 {
			o.load = new(float64(binary.NativeEndian.Uint32(b)) / float64(scale))
		}
	}
	// struct xsw_usage of sys/sysctl.h: total, available and used bytes.
	if b, err := unix.SysctlRaw("vm.swapusage"); err == nil && len(b) >= 24 {
		o.swapTotal = new(binary.NativeEndian.Uint64(b))
		o.swapUsed = new(binary.NativeEndian.Uint64(b[16:]))
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil {
		o.memlock = &limit.Cur
	}
	return o
}

// disk describes the file system of a folder, or returns nil if it cannot.
func disk(folder string) *diskState {
	var s unix.Statfs_t
	if folder == "" || unix.Statfs(folder, &s) != nil {
		return nil
	}
	size := uint64(s.Bsize)
	return &diskState{folder: folder, kind: unix.ByteSliceToString(s.Fstypename[:]), free: s.Bavail * size, total: s.Blocks * size}
}
