package host

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func observe(ctx context.Context, p CheckTarget) observed {
	root := os.DirFS("/")
	before := readUse(root)
	select {
	case <-time.After(p.Sample):
	case <-ctx.Done():
	}
	o := observeLinux(before, root, linuxCalls{sync: kernelTime(), work: disk(p.Work), temp: disk(p.Temp)})
	o.pod.resolve(ctx)
	return o
}

// kernelTime queries the kernel's clock state without changing it; nil if that is not permitted, as in
// some containers.
func kernelTime() *syncState {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return nil
	}
	return &syncState{
		synchronised: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0,
		leap:         state == unix.TIME_INS || state == unix.TIME_DEL,
		errorUS:      int64(t.Maxerror), //nolint:unconvert // has 32 bits on 32-bit platforms
	}
}

// fileSystem returns the name of a known file system for statfs(2)'s number.
func fileSystem(number int64) string {
	switch uint32(number) { // the sign of large numbers differs between platforms
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.SMB2_SUPER_MAGIC:
		return "smb"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.V9FS_MAGIC:
		return "9p"
	}
	return ""
}

// disk describes the file system of a folder, or returns nil if it cannot.
func disk(folder string) *diskState {
	var s unix.Statfs_t
	if folder == "" || unix.Statfs(folder, &s) != nil {
		return nil
	}
	size := uint64(s.Bsize)
	kind := fileSystem(int64(s.Type)) //nolint:unconvert // has 32 bits on 32-bit platforms
	return &diskState{folder: folder, kind: kind, free: s.Bavail * size, total: s.Blocks * size}
}
