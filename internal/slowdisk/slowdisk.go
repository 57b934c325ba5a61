// Package slowdisk makes a server's disk slow for a time. It mounts a FUSE file system over the folder
// with the server's data. A process serves it, and passes each operation on to the folder. While the
// disk is slow, each flush and each read takes longer.
//
// As on a real slow disk, a write goes to the page cache without delay. Delayed are flushes (fsync,
// fdatasync, msync), writes to files opened with O_SYNC, O_DSYNC or O_DIRECT, and reads of what is not
// in the page cache.
package slowdisk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// ErrMissing is returned when this host does not let weir make a disk slow.
var ErrMissing = errors.New("this host does not let weir lay a file system of its own over a folder")

// Means names, for results, the mechanism that slows a disk.
const Means = "FUSE"

// Most is the largest added delay of an operation.
const Most = 10 * time.Second

// Words between a Disk and its process, one per line.
const (
	wordReady = "ready"
	wordSlow  = "by " // followed by nanoseconds
	wordDone  = "done"
	wordWrong = "error " // followed by the error
)

// A Disk is a server's folder over which a process serves a file system. It is not safe for concurrent
// use.
type Disk struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Start starts a process that serves the folder below at the mount point at. self is weir's own
// binary; start starts a command. The process ends when its input does, or with End.
func Start(self, below, at string, start func(*exec.Cmd) error) (*Disk, error) {
	cmd := exec.Command(self, "internal", "disk", below, at)
	cmd.Dir = "/" // so that it keeps no folder busy
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("serving %s: %w", at, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("serving %s: %w", at, err)
	}
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("serving %s: %w", at, err)
	}
	d := &Disk{cmd: cmd, in: in, out: bufio.NewReader(out)}
	if err := d.hear(wordReady); err != nil {
		return nil, errors.Join(fmt.Errorf("serving %s: %w", at, err), d.End())
	}
	return d, nil
}

// Pid returns the pid of the process.
func (d *Disk) Pid() int { return d.cmd.Process.Pid }

// Slow delays each flush and each read that starts from now on by the given time; 0 removes the delay
// and releases those that are waiting.
func (d *Disk) Slow(by time.Duration) error {
	if _, err := fmt.Fprintf(d.in, "%s%d\n", wordSlow, by); err != nil {
		return fmt.Errorf("telling the process of a disk: %w", err)
	}
	return d.hear(wordDone)
}

// End ends the process, which unmounts its file system. Users of that file system then get errors.
func (d *Disk) End() error {
	_ = d.in.Close()
	return d.cmd.Wait()
}

// hear waits for a word from the process.
func (d *Disk) hear(word string) error {
	line, err := d.out.ReadString('\n')
	line = strings.TrimSpace(line)
	switch {
	case line == word:
		return nil
	case strings.HasPrefix(line, wordWrong):
		return errors.New(strings.TrimPrefix(line, wordWrong))
	case err != nil:
		return fmt.Errorf("the process of a disk ended: %w", err)
	}
	return fmt.Errorf("the process of a disk says %q", line)
}

// Main is the process that Start starts: `weir internal disk BELOW AT`. args are the arguments after
// disk. It serves until in ends. It ignores signals that ask a whole tree to end, because the servers
// still write then.
func Main(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("disk: wants two folders")
	}
	alone()
	m, err := mount(args[0], args[1])
	if err != nil {
		_, _ = fmt.Fprintln(out, wordWrong+strings.ReplaceAll(err.Error(), "\n", "; "))
		return err
	}
	defer m.end()
	if _, err := fmt.Fprintln(out, wordReady); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), wordSlow)
		ns, err := strconv.ParseInt(text, 10, 64)
		if !ok || err != nil || ns < 0 || ns > int64(Most) {
			_, _ = fmt.Fprintf(out, "%s%q is not known\n", wordWrong, lines.Text())
			continue
		}
		m.lag.set(time.Duration(ns))
		if _, err := fmt.Fprintln(out, wordDone); err != nil {
			return err
		}
	}
	return lines.Err()
}
