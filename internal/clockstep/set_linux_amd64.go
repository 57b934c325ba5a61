package clockstep

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits on how long a process is stopped.
const (
	stopLimit = 2 * time.Second // for stopping all its threads, and for resuming them
	stopPause = 100 * time.Microsecond
	awayPause = time.Millisecond // pause to let a thread leave the code that is to be changed
	attempts  = 50

	dyingLimit = 100 * time.Millisecond // wait for a process that is about to end
)

// errStays is returned when a thread stays in the code that is to be changed, as one of a stopped
// process may.
var errStays = errors.New("its threads do not leave the clock (where it is stopped, let it continue first)")

// set makes the wall clock of a process differ from the host's by a step. This process must not be the
// parent of that one: the parent would take set's actions for the end of its child.
func set(pid int, by time.Duration) error {
	v, err := find()
	if err != nil {
		return err
	}
	if err = v.set(pid, by); err == nil {
		return nil
	}
	for limit := time.Now().Add(dyingLimit); time.Now().Before(limit); time.Sleep(awayPause) {
		stat, gone := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if gone != nil || state(stat) == 'Z' || state(stat) == 'X' {
			return nil
		}
	}
	return fmt.Errorf("process %d: %w", pid, err)
}

// A vdso describes the vDSO of this kernel.
type vdso struct {
	image []byte
	at    map[uint64]int // offsets of the functions in the image, with those of their replacements in code
	room  uint64         // offset in the image of free space for the code
}

// find reads the vDSO of this process.
func find() (*vdso, error) {
	mem, from, to, err := mapped(os.Getpid(), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = mem.Close() }()
	v := &vdso{image: make([]byte, to-from), at: map[uint64]int{}}
	if _, err := mem.ReadAt(v.image, int64(from)); err != nil {
		return nil, fmt.Errorf("reading the vDSO: %w", err)
	}
	file, err := elf.NewFile(bytes.NewReader(v.image))
	if err != nil {
		return nil, fmt.Errorf("reading the vDSO: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("reading the vDSO: %w", err)
	}
	for name, start := range entries {
		i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == name })
		if i < 0 || symbols[i].Size < jumpBytes || symbols[i].Value+jumpBytes > uint64(len(v.image)) {
			return nil, fmt.Errorf("the vDSO of this kernel has no %s that can be changed", name)
		}
		v.at[symbols[i].Value] = start
	}
	// After the content described by the file, the page is empty.
	used := uint64(len(bytes.TrimRight(v.image, "\x00")))
	for _, s := range file.Sections {
		if s.Type != elf.SHT_NOBITS {
			used = max(used, s.Offset+s.FileSize)
		}
	}
	const sectionHeader = 64
	used += sectionHeader // the last one may end in zeros
	if v.room = (used + 15) &^ 15; v.room+uint64(len(code))+stepBytes > uint64(len(v.image)) {
		return nil, fmt.Errorf("the vDSO of this kernel has no room for %d bytes", len(code)+stepBytes)
	}
	return v, nil
}

// mapped opens the memory of a process, and locates its vDSO.
func mapped(pid, flag int) (mem *os.File, from, to uint64, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	maps, err := os.ReadFile(filepath.Join(dir, "maps"))
	if err != nil {
		return nil, 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x ", &from, &to); err != nil {
			return nil, 0, 0, fmt.Errorf("reading where the vDSO is: %w", err)
		}
		mem, err = os.OpenFile(filepath.Join(dir, "mem"), flag, 0)
		return mem, from, to, err
	}
	return nil, 0, 0, errors.New("it has no vDSO")
}

// set writes a step into a process, or removes it.
func (v *vdso) set(pid int, by time.Duration) error {
	mem, from, to, err := mapped(pid, os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { _ = mem.Close() }()
	now := make([]byte, to-from)
	if _, err := mem.ReadAt(now, int64(from)); err != nil {
		return fmt.Errorf("reading its vDSO: %w", err)
	}
	if !v.owns(now) {
		return errors.New("its vDSO is another one (a program of another architecture)")
	}
	if by == 0 && v.untouched(now) {
		return nil
	}
	for range attempts {
		clear := false
		err := onThread(func() (err error) {
			if clear, err = v.hold(pid, from); err != nil || !clear {
				return err
			}
			return v.write(mem, from, by)
		})
		if err != nil || clear {
			return err
		}
		time.Sleep(awayPause)
	}
	return errStays
}

// owns reports whether an image is this vDSO, possibly changed by this package.
func (v *vdso) owns(image []byte) bool {
	if len(image) != len(v.image) {
		return false
	}
	image = slices.Clone(image)
	for at := range v.at {
		copy(image[at:at+jumpBytes], v.image[at:])
	}
	end := v.room + uint64(len(code)) + stepBytes
	copy(image[v.room:end], v.image[v.room:])
	return bytes.Equal(image, v.image)
}

// untouched reports whether the functions of an image are the kernel's.
func (v *vdso) untouched(image []byte) bool {
	for at := range v.at {
		if !bytes.Equal(image[at:at+jumpBytes], v.image[at:at+jumpBytes]) {
			return false
		}
	}
	return true
}

// write writes or removes a step while the process is stopped, and verifies it.
func (v *vdso) write(mem *os.File, base uint64, by time.Duration) error {
	put := func(at uint64, b []byte) error {
		if _, err := mem.WriteAt(b, int64(base+at)); err != nil {
			return fmt.Errorf("writing into it: %w (run weir as root, on a kernel that lets root write to the code of a process)", err)
		}
		got := make([]byte, len(b))
		if _, err := mem.ReadAt(got, int64(base+at)); err != nil || !bytes.Equal(got, b) {
			return fmt.Errorf("what was written is not there (%w)", err)
		}
		return nil
	}
	if by != 0 {
		if err := put(v.room, stepped(by)); err != nil {
			return err
		}
	}
	var errs []error
	for at, start := range v.at {
		b := v.image[at : at+jumpBytes]
		if by != 0 {
			b = jump(at, v.room+uint64(start))
		}
		errs = append(errs, put(at, b))
	}
	return errors.Join(errs...)
}

// onThread calls f on a new thread and returns when that thread has ended. That resumes what f traces,
// with all signals that arrived in the meantime.
func onThread(f func() error) error {
	type ended struct {
		thread int
		err    error
	}
	done := make(chan ended)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends
		if unix.Gettid() == unix.Getpid() {
			done <- ended{0, onThread(f)} // the main thread never ends, so keep it busy and use another
			runtime.UnlockOSThread()
			return
		}
		done <- ended{unix.Gettid(), f()}
	}()
	e := <-done
	for limit := time.Now().Add(stopLimit); e.thread != 0; time.Sleep(stopPause / 2) {
		if _, err := os.Stat(filepath.Join("/proc/self/task", strconv.Itoa(e.thread))); err != nil {
			break
		}
		if time.Now().After(limit) {
			return errors.Join(e.err, errors.New("what held it does not end"))
		}
	}
	return e.err
}

// hold stops all threads of a process until the calling thread ends. clear reports whether no thread
// is inside code that is to be written.
//
// It traces the threads, since tracing does not send a signal: a process that somebody stops (SIGSTOP)
// before, during or afterwards stays stopped, and one that somebody continues continues.
func (v *vdso) hold(pid int, base uint64) (clear bool, err error) {
	held := map[int]bool{}
	for limit := time.Now().Add(stopLimit); ; time.Sleep(stopPause) {
		grown, err := seize(pid, held)
		if err != nil {
			return false, err
		}
		if !grown {
			stand, clear, err := v.threads(pid, base)
			if err != nil || stand {
				return clear, err
			}
		}
		if time.Now().After(limit) {
			return false, errors.New("it does not stop")
		}
	}
}

// seize traces and interrupts the threads of a process that are not held yet. grown reports whether
// there were any.
func seize(pid int, held map[int]bool) (grown bool, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		thread, err := strconv.Atoi(e.Name())
		if err != nil {
			return false, err
		}
		if held[thread] {
			continue
		}
		if err := unix.PtraceSeize(thread); err != nil {
			stat, gone := os.ReadFile(filepath.Join(dir, e.Name(), "stat"))
			if errors.Is(err, unix.ESRCH) || gone != nil || state(stat) == 'Z' || state(stat) == 'X' {
				continue // it has ended
			}
			return false, fmt.Errorf("holding a thread: %w (run weir as root, without a debugger at the server)", err)
		}
		if err := unix.PtraceInterrupt(thread); err != nil && !errors.Is(err, unix.ESRCH) {
			return false, fmt.Errorf("holding a thread: %w", err)
		}
		held[thread], grown = true, true
	}
	return grown, nil
}

// state returns a thread's state from its stat file, or 0.
func state(stat []byte) byte {
	if i := bytes.LastIndex(stat, []byte(") ")); i >= 0 && len(stat) > i+2 {
		return stat[i+2]
	}
	return 0
}

// threads checks the held threads of a process: whether all are stopped, and whether none is inside
// code that is to be written. A thread that waits in the kernel counts as stopped: it cannot return
// from there.
func (v *vdso) threads(pid int, base uint64) (stand, clear bool, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, false, err
	}
	clear = true
	for _, e := range entries {
		stat, err1 := os.ReadFile(filepath.Join(dir, e.Name(), "stat"))
		call, err2 := os.ReadFile(filepath.Join(dir, e.Name(), "syscall"))
		if err := errors.Join(err1, err2); err != nil {
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
				continue // it has ended
			}
			return false, false, err
		}
		now := state(stat)
		if now == 'Z' || now == 'X' {
			continue
		}
		words := strings.Fields(string(call))
		if len(words) < 3 { // "running"
			return false, false, nil
		}
		if now != 't' && slices.Contains(makesThreads, words[0]) {
			return false, false, nil // the thread it creates would not be held
		}
		pc, err := strconv.ParseUint(words[len(words)-1], 0, 64)
		if err != nil {
			return false, false, fmt.Errorf("reading where a thread stands: %w", err)
		}
		if v.within(pc - base) {
			clear = false
		}
	}
	return true, clear, nil
}

// makesThreads are the system calls that create threads: clone and clone3.
var makesThreads = []string{strconv.Itoa(unix.SYS_CLONE), strconv.Itoa(unix.SYS_CLONE3)}

// within reports whether an offset is inside of what is written: in a function after its first byte (a
// thread at the first byte runs whatever is there then), or between the two reads of a step. The rest
// of the code never changes.
func (v *vdso) within(at uint64) bool {
	for start := range v.at {
		if at > start && at < start+jumpBytes {
			return true
		}
	}
	return at >= v.room+betweenFrom && at <= v.room+betweenTo
}
