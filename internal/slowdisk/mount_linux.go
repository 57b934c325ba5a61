package slowdisk

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// cached is how long the kernel caches names and attributes: only this file system changes them.
const cached = time.Hour

// mounted is a folder served by this process.
type mounted struct {
	at  string
	lag lag
}

// Check returns ErrMissing, with what is missing, if no folder can be served on this host. It serves
// one and leaves nothing behind. The mount is visible to the calling thread.
func Check(below, at string) error {
	m, err := mount(below, at)
	if err != nil {
		return err
	}
	m.end()
	return nil
}

// alone makes this process ignore signals that end a tree, and create files with the mode requested:
// the kernel has already applied the caller's umask.
func alone() {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	unix.Umask(0)
}

// mount serves the folder below at the mount point at.
func mount(below, at string) (*mounted, error) {
	root, err := fs.NewLoopbackRoot(below)
	if err != nil {
		return nil, fmt.Errorf("serving %s: %w", below, err)
	}
	m := &mounted{at: at}
	keep := cached
	_, err = fs.Mount(at, &node{LoopbackNode: root.(*fs.LoopbackNode), lag: &m.lag}, &fs.Options{
		MountOptions: fuse.MountOptions{
			FsName: "weir", Name: "weir", AllowOther: true, Options: []string{"default_permissions"}, DirectMountStrict: true,
			MaxWrite: fuse.MAX_KERNEL_WRITE,
			// Otherwise the kernel requests an attribute of each file that is written.
			DisableXAttrs: true,
			// Keep the page cache: nothing else changes the files.
			ExplicitDataCacheControl: true,
			// Otherwise reads and flushes of mapped files bypass this process.
			DisabledCapabilities: fuse.CAP_PASSTHROUGH,
		},
		EntryTimeout: &keep, AttrTimeout: &keep, NullPermissions: true,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w (run weir as root, on a kernel with FUSE and /dev/fuse; in a container with --privileged)", ErrMissing, err)
	}
	return m, nil
}

// end unmounts the file system, even if it is in use.
func (m *mounted) end() {
	m.lag.set(0)
	_ = unix.Unmount(m.at, unix.MNT_DETACH)
}

// A node is a file or a folder. What it does not implement itself goes to the folder below.
type node struct {
	*fs.LoopbackNode
	lag *lag
}

// WrapChild makes the children of a node nodes.
func (n *node) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{LoopbackNode: ops.(*fs.LoopbackNode), lag: n.lag}
}

// handed returns the open flags passed on to the folder below. With O_SYNC or O_DSYNC the kernel
// itself flushes after each write, and this process's buffers do not suit O_DIRECT.
func handed(flags uint32) uint32 { return flags &^ (unix.O_SYNC | unix.O_DSYNC | unix.O_DIRECT) }

// opened keeps a file's pages in the kernel's cache when it is opened.
const opened = fuse.FOPEN_KEEP_CACHE

// Open opens a file.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, _, errno := n.LoopbackNode.Open(ctx, handed(flags))
	if errno != 0 {
		return nil, 0, errno
	}
	return n.file(h, flags), opened, 0
}

// Create creates and opens a file.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	i, h, _, errno := n.LoopbackNode.Create(ctx, name, handed(flags), mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return i, n.file(h, flags), opened, 0
}

func (n *node) file(h fs.FileHandle, flags uint32) *file {
	f := h.(*fs.LoopbackFile)
	fd, _ := f.PassthroughFd() // it only returns the number
	return &file{LoopbackFile: f, fd: fd, direct: flags&unix.O_DIRECT != 0, lag: n.lag}
}

// Setattr changes attributes, and reports errors.
func (n *node) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if f, ok := h.(*file); ok {
		return f.Setattr(ctx, in, out)
	}
	return n.LoopbackNode.Setattr(ctx, nil, in, out)
}

// CopyFileRange is left to the kernel, which reads and writes.
func (n *node) CopyFileRange(context.Context, fs.FileHandle, uint64, *fs.Inode, fs.FileHandle, uint64, uint64, uint64) (uint32, syscall.Errno) {
	return 0, unix.ENOSYS
}

// Statx is left to Getattr, which handles unlinked files.
func (n *node) Statx(context.Context, fs.FileHandle, uint32, uint32, *fuse.StatxOut) syscall.Errno {
	return unix.ENOSYS
}

// OpendirHandle opens a folder.
func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, _, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	d, ok := h.(listed)
	if !ok {
		return nil, 0, unix.ENOSYS
	}
	return &folder{listed: d, lag: n.lag}, 0, 0
}

// listed is what an opened folder supports.
type listed interface {
	fs.FileReaddirenter
	fs.FileSeekdirer
	fs.FileReleasedirer
	fs.FileFsyncdirer
}

// A folder is an opened folder.
type folder struct {
	listed
	lag *lag
}

// Fsyncdir flushes the folder.
func (f *folder) Fsyncdir(ctx context.Context, flags uint32) syscall.Errno {
	f.lag.wait()
	return f.listed.Fsyncdir(ctx, flags)
}

// A file is an opened file. The kernel closes it once nothing uses it any more, so that no lock is
// needed.
type file struct {
	*fs.LoopbackFile
	fd     int
	direct bool // writes wait for the disk
	lag    *lag
}

// PassthroughFd returns no file, so that the kernel does not bypass this one.
func (f *file) PassthroughFd() (int, bool) { return 0, false }

// Read reads what is not in the page cache.
func (f *file) Read(_ context.Context, into []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	f.lag.wait()
	return fuse.ReadResultFd(uintptr(f.fd), off, len(into)), 0
}

// Write writes to the page cache of the folder below.
func (f *file) Write(_ context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if f.direct {
		f.lag.wait()
	}
	for {
		n, err := unix.Pwrite(f.fd, data, off)
		if !errors.Is(err, unix.EINTR) {
			return uint32(max(n, 0)), fs.ToErrno(err)
		}
	}
}

// flushData is the flag of a flush without attributes: fdatasync.
const flushData = 1

// Fsync flushes.
func (f *file) Fsync(_ context.Context, flags uint32) syscall.Errno {
	f.lag.wait()
	if flags&flushData != 0 {
		return fs.ToErrno(unix.Fdatasync(f.fd))
	}
	return fs.ToErrno(unix.Fsync(f.fd))
}

// Flush does nothing when a file is closed.
func (f *file) Flush(context.Context) syscall.Errno { return unix.ENOSYS }

// Lseek is left to the kernel, for which the whole file is data.
func (f *file) Lseek(context.Context, uint64, uint32) (uint64, syscall.Errno) { return 0, unix.ENOSYS }

// Ioctl supports nothing: no server needs it.
func (f *file) Ioctl(context.Context, uint32, uint64, []byte, []byte) (int32, syscall.Errno) {
	return 0, unix.ENOTTY
}
