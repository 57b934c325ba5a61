package broker

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onDisk calls f with the folder of a small disk that only it sees.
func onDisk(t *testing.T, f func(dir string)) {
	t.Helper()
	if err := CheckDisks(t.Context()); err != nil {
		t.Skip(err)
	}
	root := t.TempDir()
	dir := filepath.Join(root, "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with its namespace
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
	loops, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range loops {
		if b, _ := os.ReadFile(x); strings.HasPrefix(string(b), root) {
			t.Errorf("%s is left: %s", x, b)
		}
	}
}

func TestADiskIsFullUntilItIsEmptied(t *testing.T) {
	onDisk(t, func(dir string) {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("a new disk holds %v, %v; want nothing", entries, err)
		}
		write := func(name string) error { return os.WriteFile(filepath.Join(dir, name), make([]byte, 1<<20), 0o600) }
		if err := write("before"); err != nil {
			t.Fatal(err)
		}
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

func TestAFullDiskTakesNothingFromTheHost(t *testing.T) {
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
