package slowdisk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// TestMain lets the test binary also play a disk's process.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "internal" && os.Args[2] == "disk" {
		if err := Main(os.Args[3:], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// disk starts a disk in its own mount namespace. It returns the folder below, and the folder as seen
// by users of the disk.
func disk(t *testing.T) (d *Disk, below, at string) {
	t.Helper()
	if os.Getuid() != 0 {
		needs.Host(t, "root", "FUSE needs it")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, dir := range []string{filepath.Dir(root), root} { // for users other than root
		must.Do(t, os.Chmod(dir, 0o755))
	}
	below, at = filepath.Join(root, "below"), filepath.Join(root, "at")
	for _, dir := range []string{below, at} {
		must.Do(t, os.Mkdir(dir, 0o755))
	}
	d, err = Start(self, below, at, func(cmd *exec.Cmd) error {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		return cmd.Start()
	})
	if errors.Is(err, ErrMissing) || err != nil && strings.Contains(err.Error(), ErrMissing.Error()) {
		needs.Host(t, "fuse", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.End(); err != nil && d.cmd.ProcessState == nil {
			t.Error(err)
		}
	})
	return d, below, filepath.Join("/proc", strconv.Itoa(d.Pid()), "root", at)
}

// done fails the test if err is not nil.
func done(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holds compares a file with a text.
func holds(t *testing.T, file, want string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil || string(b) != want {
		t.Errorf("%s holds %q, %v; want %q", filepath.Base(file), b, err, want)
	}
}

func TestFilesReachLowerFolder(t *testing.T) {
	_, below, at := disk(t)
	in, out := func(name string) string { return filepath.Join(at, name) }, func(name string) string { return filepath.Join(below, name) }

	done(t, os.MkdirAll(in("a/b"), 0o750))
	done(t, os.WriteFile(in("a/b/one"), []byte("one"), 0o640))
	holds(t, out("a/b/one"), "one")
	st, err := os.Stat(out("a/b/one"))
	done(t, err)
	if st.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", st.Mode())
	}
	f, err := os.OpenFile(in("a/b/one"), os.O_WRONLY|os.O_APPEND, 0)
	done(t, err)
	_, err = f.WriteString(" two")
	done(t, err)
	done(t, f.Sync())
	done(t, f.Close())
	holds(t, out("a/b/one"), "one two")
	holds(t, in("a/b/one"), "one two")
	done(t, os.Truncate(in("a/b/one"), 2))
	holds(t, out("a/b/one"), "on")
	done(t, os.Rename(in("a/b/one"), in("c")))
	done(t, os.Link(in("c"), in("d")))
	done(t, os.Symlink("c", in("e")))
	done(t, os.Chmod(in("d"), 0o600))
	done(t, os.Chown(in("d"), 7, 8))
	if st, err := os.Stat(out("c")); err != nil || st.Mode().Perm() != 0o600 || st.Sys().(*syscall.Stat_t).Uid != 7 {
		t.Errorf("%v, %v", st, err)
	}
	holds(t, in("e"), "on")
	done(t, unix.Mkfifo(in("fifo"), 0o600))
	done(t, os.Remove(in("d")))
	done(t, os.RemoveAll(in("a")))
	var names []string
	entries, err := os.ReadDir(at)
	done(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"c", "e", "fifo"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// An unlinked file still works.
	f, err = os.OpenFile(in("c"), os.O_RDWR, 0)
	done(t, err)
	done(t, os.Remove(in("c")))
	_, err = f.WriteAt([]byte("longer"), 0)
	done(t, err)
	if st, err := f.Stat(); err != nil || st.Size() != 6 {
		t.Errorf("of a file without a name: %v, %v", st, err)
	}
	done(t, f.Truncate(3))
	b := make([]byte, 9)
	if n, _ := f.ReadAt(b, 0); string(b[:n]) != "lon" {
		t.Errorf("it holds %q", b[:n])
	}
	done(t, f.Close())
}

func TestMappedWritesReachLowerFolder(t *testing.T) {
	_, below, at := disk(t)
	f, err := os.OpenFile(filepath.Join(at, "mapped"), os.O_RDWR|os.O_CREATE, 0o600)
	done(t, err)
	defer func() { _ = f.Close() }()
	done(t, f.Truncate(8192))
	m, err := unix.Mmap(int(f.Fd()), 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	done(t, err)
	copy(m[4096:], "mapped")
	done(t, unix.Msync(m, unix.MS_SYNC))
	b, err := os.ReadFile(filepath.Join(below, "mapped"))
	if err != nil || len(b) != 8192 || string(b[4096:4102]) != "mapped" {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	// Written data appears in the mapping, and vice versa.
	_, err = f.WriteAt([]byte("written"), 0)
	done(t, err)
	if string(m[:7]) != "written" {
		t.Errorf("mapped: %q", m[:7])
	}
	copy(m, "W")
	got := make([]byte, 7)
	if _, err := f.ReadAt(got, 0); err != nil || string(got) != "Written" {
		t.Errorf("read: %q, %v", got, err)
	}
	done(t, unix.Munmap(m))
}

func TestNonRootServerIsSubjectToPermissions(t *testing.T) {
	_, _, at := disk(t)
	done(t, os.Chmod(at, 0o777))
	done(t, os.WriteFile(filepath.Join(at, "secret"), []byte("x"), 0o600))
	// Another user cannot access /proc/PID/root: enter its namespace.
	sh := exec.Command("nsenter", "--mount=/proc/"+strings.Split(at, "/")[2]+"/ns/mnt", "--setuid", "65534", "--setgid", "65534", "/bin/sh", "-c",
		"cd "+strings.SplitN(at, "root", 2)[1]+" && echo theirs > theirs && ! cat secret")
	if out, err := sh.CombinedOutput(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || strings.Contains(string(out), "cd: can't cd") {
			needs.Host(t, "nsenter", fmt.Sprint(err, string(out)))
		}
		t.Fatalf("%v: %s", err, out)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(at, "theirs"), &st); err != nil || st.Uid != 65534 {
		t.Errorf("owner %d, %v", st.Uid, err)
	}
}

// waited are the operations that wait for a disk, each on an opened file with two pages that are not
// in the page cache.
var waited = map[string]struct {
	flags int
	do    func(f *os.File) error
}{
	"fsync":     {os.O_RDWR, func(f *os.File) error { return f.Sync() }},
	"fdatasync": {os.O_RDWR, func(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }},
	"a write with O_SYNC": {os.O_RDWR | unix.O_SYNC, func(f *os.File) error {
		_, err := f.WriteAt(make([]byte, 4096), 0)
		return err
	}},
	"a write with O_DSYNC": {os.O_RDWR | unix.O_DSYNC, func(f *os.File) error {
		_, err := f.WriteAt(make([]byte, 4096), 0)
		return err
	}},
	"a read": {os.O_RDONLY, func(f *os.File) error {
		_, err := f.ReadAt(make([]byte, 10), 0)
		return err
	}},
	"msync": {os.O_RDWR, func(f *os.File) error {
		m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		m[0] = 'x'
		return errors.Join(unix.Msync(m, unix.MS_SYNC), unix.Munmap(m))
	}},
}

func TestSlowDiskDelaysFlushesAndReads(t *testing.T) {
	const by = 150 * time.Millisecond
	for name, x := range waited {
		t.Run(name, func(t *testing.T) {
			d, below, at := disk(t)
			done(t, os.WriteFile(filepath.Join(below, "f"), make([]byte, 8192), 0o600))
			f, err := os.OpenFile(filepath.Join(at, "f"), x.flags, 0)
			done(t, err)
			defer func() { _ = f.Close() }()
			done(t, d.Slow(by))
			began := time.Now()
			done(t, x.do(f))
			if took := time.Since(began); took < by {
				t.Errorf("it took %v; want at least %v", took, by)
			}
		})
	}
}

func TestAFolderIsFlushedSlowly(t *testing.T) {
	const by = 150 * time.Millisecond
	d, _, at := disk(t)
	f, err := os.Open(at)
	done(t, err)
	defer func() { _ = f.Close() }()
	done(t, f.Sync())
	done(t, d.Slow(by))
	began := time.Now()
	done(t, f.Sync())
	if took := time.Since(began); took < by {
		t.Errorf("it took %v; want at least %v", took, by)
	}
}

func TestPageCacheWriteIsNotDelayed(t *testing.T) {
	d, _, at := disk(t)
	done(t, d.Slow(Most))
	began := time.Now()
	done(t, os.WriteFile(filepath.Join(at, "f"), make([]byte, 1<<20), 0o600))
	b, err := os.ReadFile(filepath.Join(at, "f")) // from the page cache
	if err != nil || len(b) != 1<<20 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if took := time.Since(began); took >= Most {
		t.Errorf("it took %v: it waited", took)
	}
}

func TestWaitersResumeWhenDiskRecovers(t *testing.T) {
	d, _, at := disk(t)
	f, err := os.Create(filepath.Join(at, "f"))
	done(t, err)
	defer func() { _ = f.Close() }()
	done(t, d.Slow(Most))
	began, over := time.Now(), make(chan error)
	go func() { over <- f.Sync() }()
	select {
	case err := <-over:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	done(t, d.Slow(0))
	done(t, <-over)
	if took := time.Since(began); took >= Most {
		t.Errorf("it took %v: all of its time", took)
	}
}

func TestDiskIgnoresSIGTERMUntilInputCloses(t *testing.T) {
	d, _, at := disk(t)
	done(t, d.cmd.Process.Signal(unix.SIGTERM))
	done(t, d.Slow(0)) // it answers
	done(t, os.WriteFile(filepath.Join(at, "f"), nil, 0o600))
	done(t, d.End())
}

func TestMissingLowerFolderIsReported(t *testing.T) {
	self, err := os.Executable()
	done(t, err)
	at := t.TempDir()
	_, err = Start(self, filepath.Join(at, "missing"), at, (*exec.Cmd).Start)
	if err == nil || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("%v", err)
	}
}

func TestUnknownDiskCommandIsRejected(t *testing.T) {
	d, _, _ := disk(t)
	if err := d.Slow(Most + 1); err == nil || err.Error() != fmt.Sprintf("%q is not known", fmt.Sprintf("by %d", Most+1)) {
		t.Errorf("%v", err)
	}
	done(t, d.Slow(0))
}
