package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/slowdisk"
)

// ErrNoDisks is returned when this host does not let weir give servers their own disks.
var ErrNoDisks = errors.New("this host does not let weir give servers disks of their own")

// diskBytes is the size of a server's own disk. The image is a sparse file: it uses only what the
// server writes on the host, even when weir fills the disk.
const diskBytes = 16 << 30

// apartMounts re-executes this process in a mount namespace of its own, unless it is already in one.
// The mounts there end with its processes. It returns if there is nothing to do, or with an error.
func apartMounts() error {
	own, err1 := os.Readlink("/proc/self/ns/mnt")
	above, err2 := os.Readlink(filepath.Join("/proc", strconv.Itoa(os.Getppid()), "ns/mnt"))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("reading mount namespaces: %w", err)
	}
	if own != above {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := privateMounts(); err != nil {
		return err
	}
	return fmt.Errorf("entering a mount namespace: %w", syscall.Exec(self, os.Args, os.Environ()))
}

// privateMounts moves the calling thread to a new mount namespace, so that no other thread sees its
// mounts.
func privateMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return noDisk("a mount namespace", err, "run weir as root")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return noDisk("a mount namespace", err, "run weir as root")
	}
	return nil
}

func noDisk(what string, err error, need string) error {
	return fmt.Errorf("%w: making %s: %w (%s)", ErrNoDisks, what, err, need)
}

// CheckDisks returns ErrNoDisks, with what is missing, if servers on this host cannot have their own
// disks. It creates a disk and leaves nothing behind. mkfs is looked up where system programs are.
func CheckDisks(ctx context.Context) error {
	return tryMount(func(dir, data string) error {
		if err := mountDisk(ctx, thisHost(), filepath.Join(dir, "image"), data, 16<<20); err != nil {
			return err
		}
		return unix.Unmount(data, unix.MNT_DETACH)
	})
}

// CheckSlowDisks returns ErrNoDisks or slowdisk.ErrMissing, with what is missing, if servers on this
// host cannot have a slow disk.
func CheckSlowDisks() error {
	return tryMount(func(dir, data string) error { return slowdisk.Check(dir, data) })
}

// tryMount calls f with a folder and a subfolder, in a namespace where f's mounts are not visible
// outside.
func tryMount(f func(dir, data string) error) error {
	dir, err := os.MkdirTemp("", "weir-disk-")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoDisks, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrNoDisks, err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread and its namespace end with the goroutine
		err := privateMounts()
		if err == nil {
			err = f(dir, data)
		}
		done <- err
	}()
	return <-done
}

// mountDisk creates an image of the given size with a file system and mounts it. The loop device is
// released with the mount.
func mountDisk(ctx context.Context, h *host, image, dir string, size int64) error {
	mkfs, err := h.look("mkfs.ext4")
	if err != nil {
		return fmt.Errorf("%w: %w (apt install e2fsprogs)", ErrNoDisks, err)
	}
	f, err := os.OpenFile(image, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := f.Truncate(size); err != nil {
		return err
	}
	made, err := exec.CommandContext(ctx, mkfs, "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1", image).CombinedOutput()
	if err != nil {
		return noDisk("a file system", fmt.Errorf("%w: %s", err, made), "e2fsprogs")
	}
	device, err := loop(f)
	if err != nil {
		return err
	}
	defer func() { _ = device.Close() }()
	// noinit_itable: otherwise the kernel keeps writing to it.
	if err := unix.Mount(device.Name(), dir, "ext4", unix.MS_NOATIME, "noinit_itable"); err != nil {
		return noDisk("a mount", err, "run weir as root, on a kernel with ext4")
	}
	return os.RemoveAll(filepath.Join(dir, "lost+found")) // servers expect an empty folder
}

// loopAttempts bounds retries when another process takes the same device first.
const loopAttempts = 20

// loop attaches a file to a loop device, which is released with its last user.
func loop(f *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, noDisk("a loop device", err, "run weir as root, with modprobe loop; in a container with --privileged")
	}
	defer func() { _ = control.Close() }()
	for range loopAttempts {
		var n int
		if n, err = unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE); err != nil {
			break
		}
		var device *os.File
		if device, err = os.OpenFile("/dev/loop"+strconv.Itoa(n), os.O_RDWR, 0); err != nil {
			break
		}
		config := unix.LoopConfig{Fd: uint32(f.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &config); err == nil {
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, noDisk("a loop device", err, "run weir as root; in a container with --privileged")
}

// A filler keeps a disk full.
type filler struct {
	f    *os.File // unlinked: closing it frees the space
	at   int64
	stop chan struct{}
	over chan struct{}
}

// fillPause is how often to look for space that a server has freed.
const fillPause = 50 * time.Millisecond

// fill uses all free space of a folder's file system, including space freed later, until it is
// emptied.
func fill(dir string) (*filler, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("filling %s: %w", dir, err)
	}
	x := &filler{f: os.NewFile(uintptr(fd), dir), stop: make(chan struct{}), over: make(chan struct{})}
	if err := x.take(); err != nil {
		_ = x.f.Close()
		return nil, fmt.Errorf("filling %s: %w", dir, err)
	}
	go func() {
		defer close(x.over)
		tick := time.NewTicker(fillPause)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = x.take() // retried
			case <-x.stop:
				return
			}
		}
	}()
	return x, nil
}

// take uses the free space in ever smaller pieces.
func (x *filler) take() error {
	for piece := int64(1 << 30); piece >= 4<<10; {
		switch err := unix.Fallocate(int(x.f.Fd()), 0, x.at, piece); {
		case err == nil:
			x.at += piece
		case errors.Is(err, unix.ENOSPC):
			piece /= 2
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
	return nil
}

// empty frees the space.
func (x *filler) empty() error {
	close(x.stop)
	<-x.over
	return x.f.Close()
}
