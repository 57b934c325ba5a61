package broker

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/slowdisk"
)

// onDisk calls f with the folder of a small disk that only f sees.
func onDisk(t *testing.T, f func(dir string)) {
	t.Helper()
	if err := CheckDisks(t.Context()); err != nil {
		needs.Host(t, "loop", err)
	}
	root := t.TempDir()
	dir := filepath.Join(root, "data")
	must.Do(t, os.Mkdir(dir, 0o700))
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread and its namespace end with the goroutine
		done <- func() error {
			if err := privateMounts(); err != nil {
				return err
			}
			if err := mountDisk(t.Context(), thisHost(), filepath.Join(root, "image"), dir, 64<<20); err != nil {
				return err
			}
			f(dir)
			return unix.Unmount(dir, 0)
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	loops := must.Get(filepath.Glob("/sys/block/loop*/loop/backing_file"))(t)
	for _, x := range loops {
		if b, _ := os.ReadFile(x); strings.HasPrefix(string(b), root) {
			t.Errorf("%s is left: %s", x, b)
		}
	}
}

func TestDiskIsFullUntilEmptied(t *testing.T) {
	onDisk(t, func(dir string) {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("a new disk holds %v, %v; want nothing", entries, err)
		}
		write := func(name string) error { return os.WriteFile(filepath.Join(dir, name), make([]byte, 1<<20), 0o600) }
		must.Do(t, write("before"))
		x, err := fill(dir)
		if err != nil {
			t.Error(err)
			return
		}
		if err := write("while it is full"); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("writing to a full disk: %v; want that there is no space", err)
		}
		if err := x.empty(); err != nil {
			t.Error(err)
		}
		if err := write("after"); err != nil {
			t.Error(err)
		}
	})
}

func TestFullDiskUsesLittleHostSpace(t *testing.T) {
	onDisk(t, func(dir string) {
		x, err := fill(dir)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = x.empty() }()
		var s unix.Stat_t
		if err := unix.Stat(filepath.Join(filepath.Dir(dir), "image"), &s); err != nil || s.Blocks*512 > 16<<20 {
			t.Errorf("the image of 64 MiB takes %d bytes, %v; want few", s.Blocks*512, err)
		}
	})
}

// slowly returns a Serving whose servers have slowable disks.
func slowly(t *testing.T, recipe string, nodes int) Serving {
	t.Helper()
	if err := CheckSlowDisks(); err != nil {
		needs.Host(t, "fuse", err)
	}
	s := serving(t, recipe, nodes)
	s.Slow = true
	return s
}

// dataOf returns the data folder of a process as the process sees it.
func dataOf(r *Running, process string) string {
	_, supervisor := r.Guard()
	return filepath.Join("/proc", strconv.Itoa(supervisor), "root", r.Dir, process, dataFolder)
}

func TestSlowDiskDelaysServer(t *testing.T) {
	r := up(t, slowly(t, "fake", 2))
	if len(r.Disks) != 2 {
		t.Fatalf("processes of disks: %v", r.Disks)
	}
	flush := func(process string) time.Duration {
		t.Helper()
		began := time.Now()
		f := must.Get(os.Create(filepath.Join(dataOf(r, process), "file")))(t)
		must.Do(t, errors.Join(f.Sync(), f.Close()))
		return time.Since(began)
	}
	flush("server-1")
	must.Get(r.Order(t.Context(), OrderSlow, 200*time.Millisecond, "server-1"))(t)
	if took := flush("server-1"); took < 200*time.Millisecond {
		t.Errorf("a flush took %v; want at least 200ms", took)
	}
	// The other server's disk is unaffected, and this one recovers.
	must.Get(r.Order(t.Context(), OrderSlow, slowdisk.Most, "server-1"))(t)
	if took := flush("server-2"); took >= slowdisk.Most {
		t.Errorf("a flush of another disk took %v", took)
	}
	// A restarted server keeps its data.
	for _, do := range []Order{OrderKill, OrderStart, OrderQuicken} {
		must.Get(r.Order(t.Context(), do, 0, "server-1"))(t)
	}
	if took := flush("server-1"); took >= slowdisk.Most { // alone: a start may take a busy host as long
		t.Errorf("a flush took %v when the disk was quick again", took)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "server-1"+belowSuffix, "file")); err != nil {
		t.Error(err)
	}
	if _, err := r.Order(t.Context(), OrderFill, 0, "server-1"); err == nil || !strings.Contains(err.Error(), "no disks of their own") {
		t.Errorf("filled: %v", err)
	}
}

func TestSlowDiskCanAlsoFill(t *testing.T) {
	if err := CheckDisks(t.Context()); err != nil {
		needs.Host(t, "loop", err)
	}
	s := slowly(t, "fake", 1)
	s.Disks = true
	r := up(t, s)
	must.Get(r.Order(t.Context(), OrderFill, 0, "server-1"))(t)
	file := filepath.Join(dataOf(r, "server-1"), "file")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing to a full disk: %v; want that there is no space", err)
	}
	must.Get(r.Order(t.Context(), OrderEmpty, 0, "server-1"))(t)
	must.Do(t, os.WriteFile(file, make([]byte, 1<<20), 0o600))
}

func TestStartRetryLeavesNoExtraDisks(t *testing.T) {
	r := up(t, slowly(t, "robbed", 1))
	if len(r.Disks) != 1 {
		t.Errorf("processes of disks: %v", r.Disks)
	}
}

func TestSlowingAbsentDisksFails(t *testing.T) {
	r := up(t, serving(t, "fake", 1))
	if _, err := r.Order(t.Context(), OrderSlow, time.Second, "server-1"); err == nil || !strings.Contains(err.Error(), "no disks that can be slow") {
		t.Errorf("%v", err)
	}
}
