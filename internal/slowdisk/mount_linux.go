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

// cached is how long the kernel keeps names and attributes: nothing changes them but by the
// file system itself.
const cached = time.Hour

// mounted is a folder that this process serves.
type mounted struct {
	at  string
	lag lag
}

// Check refuses, with ErrMissing and what is needed, a host on which no folder can be served.
// It serves one, and leaves nothing behind. It mounts where the calling thread sees it.
func Check(below, at string) error {
	m, err := mount(below, at)
	if err != nil {
		return err
	}
	m.end()
	return nil
}

// alone has this process outlive signals that end a tree, and make files as it is told: the
// kernel has applied the mask of who asks.
func alone() {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	unix.Umask(0)
}

// mount serves the folder below at the folder at.
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
			// Else the kernel asks for an attribute of each file that is written to.
			DisableXAttrs: true,
			// The page cache stays what it is: nothing else changes the files.
			ExplicitDataCacheControl: true,
			// Else reads and flushes of a mapped file pass by.
			DisabledCapabilities: fuse.CAP_PASSTHROUGH,
		},
		EntryTimeout: &keep, AttrTimeout: &keep, NullPermissions: true,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w (run weir as root, on a kernel with FUSE and /dev/fuse; in a container with --privileged)", ErrMissing, err)
	}
	return m, nil
}

// end takes the file system away, from those that use it, too.
func (m *mounted) end() {
	m.lag.set(0)
	_ = unix.Unmount(m.at, unix.MNT_DETACH)
}

// A node is a file or a folder. What it does not do itself goes to the folder below.
type node struct {
	*fs.LoopbackNode
	lag *lag
}

// WrapChild makes what is found in a node a node.
func (n *node) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{LoopbackNode: ops.(*fs.LoopbackNode), lag: n.lag}
}

// handed are the flags of an opened file that the folder below gets. The kernel flushes after
// each write with O_SYNC or O_DSYNC, and buffers of this process are not those of O_DIRECT.
func handed(flags uint32) uint32 { return flags &^ (unix.O_SYNC | unix.O_DSYNC | unix.O_DIRECT) }

// opened is what an opened file says to the kernel: its pages in the cache stay.
const opened = fuse.FOPEN_KEEP_CACHE

// Open opens a file.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, _, errno := n.LoopbackNode.Open(ctx, handed(flags))
	if errno != 0 {
		return nil, 0, errno
	}
	return n.file(h, flags), opened, 0
}

// Create makes a file, and opens it.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	i, h, _, errno := n.LoopbackNode.Create(ctx, name, handed(flags), mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return i, n.file(h, flags), opened, 0
}

func (n *node) file(h fs.FileHandle, flags uint32) *file {
	f := h.(*fs.LoopbackFile)
	fd, _ := f.PassthroughFd() // it only tells the number
	return &file{LoopbackFile: f, fd: fd, direct: flags&unix.O_DIRECT != 0, lag: n.lag}
}

// Setattr changes attributes, and says when it cannot.
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

// Statx is left to Getattr, which knows files without a name.
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

// listed is what an opened folder can.
type listed interface {
	fs.FileReaddirenter
	fs.FileSeekdirer
	fs.FileReleasedirer
	fs.FileFsyncdirer
}

// A folder is an opened one.
type folder struct {
	listed
	lag *lag
}

// Fsyncdir flushes it.
func (f *folder) Fsyncdir(ctx context.Context, flags uint32) syscall.Errno {
	f.lag.wait()
	return f.listed.Fsyncdir(ctx, flags)
}

// A file is an opened one. The kernel closes it when nothing uses it any more, so that it needs
// no lock.
type file struct {
	*fs.LoopbackFile
	fd     int
	direct bool // writes wait for the disk
	lag    *lag
}

// PassthroughFd gives the kernel no file to use in place of this one.
func (f *file) PassthroughFd() (int, bool) { return 0, false }

// Read reads what the page cache does not have.
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

// flushData is the flag of a flush that leaves out attributes: fdatasync.
const flushData = 1

// Fsync flushes.
func (f *file) Fsync(_ context.Context, flags uint32) syscall.Errno {
	f.lag.wait()
	if flags&flushData != 0 {
		return fs.ToErrno(unix.Fdatasync(f.fd))
	}
	return fs.ToErrno(unix.Fsync(f.fd))
}

// Flush has nothing to do when a file is closed.
func (f *file) Flush(context.Context) syscall.Errno { return unix.ENOSYS }

// Lseek is left to the kernel, to which all of a file is data.
func (f *file) Lseek(context.Context, uint64, uint32) (uint64, syscall.Errno) { return 0, unix.ENOSYS }

// Ioctl has nothing that a server needs.
func (f *file) Ioctl(context.Context, uint32, uint64, []byte, []byte) (int32, syscall.Errno) {
	return 0, unix.ENOTTY
}
