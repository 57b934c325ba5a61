package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of processor time in /proc: USER_HZ, which is 100 on every architecture
// supported by Go.
const ticksPerSecond = 100

// ioCounters are the reads and writes of a process and its reaped children.
type ioCounters struct {
	read, written         uint64 // bytes read from and written to disks
	readCalls, writeCalls uint64
	ok                    bool
}

// processIO reads the counters. The kernel shows them only to some users. For a process that is gone
// it returns zeros: its parent has its counts now.
func processIO(root fs.FS, pid int) (c ioCounters) {
	b, err := fs.ReadFile(root, "proc/"+strconv.Itoa(pid)+"/io")
	if err != nil {
		_, err := fs.Stat(root, "proc/"+strconv.Itoa(pid)+"/stat")
		return ioCounters{ok: err != nil}
	}
	for key, n := range pairs(string(b)) {
		switch key {
		case "syscr:":
			c.readCalls = n
		case "syscw:":
			c.writeCalls = n
		case "read_bytes:":
			c.read = n
		case "write_bytes:":
			c.written, c.ok = n, true
		}
	}
	return c
}

// processMemory returns the resident memory of a process in bytes: private, and shared or shareable.
func processMemory(root fs.FS, pid int) (anonymous, shared uint64, ok bool) {
	for line := range strings.Lines(text(root, "proc/"+strconv.Itoa(pid)+"/status")) {
		key, value, _ := strings.Cut(line, ":")
		number, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		n, err := strconv.ParseUint(number, 10, 54)
		if err != nil {
			continue
		}
		switch key {
		case "RssAnon":
			anonymous, ok = n*1024, true
		case "RssFile", "RssShmem":
			shared += n * 1024
		}
	}
	return anonymous, shared, ok
}

// mostFiles limits a walk through a server's folder.
const mostFiles = 50_000

// folderBytes returns the disk usage of the files below a folder; nil if it is unknown, or there are
// too many files to count during a run.
func folderBytes(dir string) *uint64 {
	if dir == "" {
		return nil
	}
	var sum uint64
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path != dir && os.IsNotExist(err) {
				return nil // removed in the meantime
			}
			return err
		}
		if files++; files > mostFiles {
			return fs.ErrInvalid
		}
		if info, err := d.Info(); err == nil {
			sum += allocated(info)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return &sum
}
