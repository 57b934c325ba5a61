package clockstep

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the time in which a process is stopped.
const (
	stopLimit = 2 * time.Second // until each of its threads stands
	stopPause = 100 * time.Microsecond
	awayPause = time.Millisecond // in which it goes on, where a thread stands in what is to be changed
	attempts  = 50
)

// Set has the wall clock of a process be apart from that of the host by a step; 0: not at all.
// Children that it makes later by fork have the step, too, and programs that they become have
// not. A process that is gone is not an error. What went wrong before anything was written is
// ErrMissing.
func Set(pid int, by time.Duration) error {
	if by.Abs() > Most {
		return fmt.Errorf("stepping a clock by %v: at most %v", by, Most)
	}
	v, err := find()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	err = v.set(pid, by)
	if _, gone := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "stat")); err != nil && errors.Is(gone, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: process %d: %w", ErrMissing, pid, err)
	}
	return nil
}

// A vdso is that of this kernel.
type vdso struct {
	image []byte
	at    map[uint64]int // of the functions, in the image, with what of code takes their place
	room  uint64         // in the image, for the code
}

// find reads that of this process.
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
	// Behind what the file says of itself there is nothing to the end of the page.
	used := uint64(len(bytes.TrimRight(v.image, "\x00")))
	for _, s := range file.Sections {
		if s.Type != elf.SHT_NOBITS {
			used = max(used, s.Offset+s.FileSize)
		}
	}
	const sectionHeader = 64
	used += sectionHeader // the last may end in zeros
	if v.room = (used + 15) &^ 15; v.room+uint64(len(code))+stepBytes > uint64(len(v.image)) {
		return nil, fmt.Errorf("the vDSO of this kernel has no room for %d bytes", len(code)+stepBytes)
	}
	return v, nil
}

// mapped opens the memory of a process, and says where its vDSO is.
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

// set writes a step into a process, or takes it out.
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
		clear, goOn, err := v.stop(pid, from)
		if err == nil && clear {
			err = v.write(mem, from, by)
		}
		goOn()
		if err != nil || clear {
			return err
		}
		time.Sleep(awayPause)
	}
	return errors.New("its threads do not leave the clock")
}

// owns reports whether an image is this vDSO, changed by this package or not.
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

// untouched reports whether the functions of an image are those of the kernel.
func (v *vdso) untouched(image []byte) bool {
	for at := range v.at {
		if !bytes.Equal(image[at:at+jumpBytes], v.image[at:at+jumpBytes]) {
			return false
		}
	}
	return true
}

// write writes a step, or takes it out, while the process stands, and reads it again.
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

// stop stops a process. clear reports whether no thread stands where something is to be
// written. goOn has it go on, unless it stood before.
func (v *vdso) stop(pid int, base uint64) (clear bool, goOn func(), err error) {
	stood, _, err := v.threads(pid, base)
	if err != nil {
		return false, func() {}, err
	}
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		return false, func() {}, err
	}
	goOn = func() {
		if !stood {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	}
	for limit := time.Now().Add(stopLimit); ; time.Sleep(stopPause) {
		stands, clear, err := v.threads(pid, base)
		switch {
		case err != nil:
			return false, goOn, err
		case stands:
			return clear, goOn, nil
		case time.Now().After(limit):
			return false, goOn, errors.New("it does not stop")
		}
	}
}

// threads looks at those of a process: whether all stand, and whether none is within what is
// to be written. Once one has stopped, none of the others comes back from the kernel.
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
				continue // it ended
			}
			return false, false, err
		}
		if i := bytes.LastIndex(stat, []byte(") ")); i >= 0 && len(stat) > i+2 {
			switch stat[i+2] {
			case 'T', 't':
				stand = true
			case 'Z', 'X':
				continue
			}
		}
		words := strings.Fields(string(call))
		if len(words) < 3 { // "running"
			return false, false, nil
		}
		pc, err := strconv.ParseUint(words[len(words)-1], 0, 64)
		if err != nil {
			return false, false, fmt.Errorf("reading where a thread stands: %w", err)
		}
		if v.within(pc - base) {
			clear = false
		}
	}
	return stand, clear, nil
}

// within reports whether an offset is inside what is written: in a function behind its first
// byte, since it may begin with what is there then, or between the two reads of a step. The
// rest of the code is the same each time.
func (v *vdso) within(at uint64) bool {
	for start := range v.at {
		if at > start && at < start+jumpBytes {
			return true
		}
	}
	return at >= v.room+betweenFrom && at <= v.room+betweenTo
}
