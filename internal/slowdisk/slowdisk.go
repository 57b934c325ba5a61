// Package slowdisk makes the disk of a server slow for a time. It lays a file system of its
// own (FUSE) over the folder with the server's data. A process serves it, and hands each
// operation on to the folder. While the disk is slow, each flush and each read takes longer.
//
// A write goes to the page cache and takes no longer, as on a disk that is slow: what waits is
// the flush (fsync, fdatasync, msync), a write of a file that is opened with O_SYNC or
// O_DSYNC, one with O_DIRECT, and a read of what the page cache does not have.
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

// ErrMissing: this host does not let weir make a disk slow.
var ErrMissing = errors.New("this host does not let weir lay a file system of its own over a folder")

// Means is what makes a disk slow, for results.
const Means = "FUSE"

// Most is the longest time that an operation may take longer.
const Most = 10 * time.Second

// Words between a Disk and its process. Each is a line.
const (
	wordReady = "ready"
	wordSlow  = "by " // with nanoseconds
	wordDone  = "done"
	wordWrong = "error " // with what went wrong
)

// A Disk is a folder of a server over which a process serves a file system. One goroutine at
// a time uses it.
type Disk struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Start has a process serve the folder below at the folder at. self is weir's own binary; start
// starts a command. The process ends when its input does, or with End.
func Start(self, below, at string, start func(*exec.Cmd) error) (*Disk, error) {
	cmd := exec.Command(self, "internal", "disk", below, at)
	cmd.Dir = "/" // it keeps no folder busy
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

// Pid is that of the process.
func (d *Disk) Pid() int { return d.cmd.Process.Pid }

// Slow has each flush and each read that begins from now on take so much longer; 0: no longer.
// Those that wait with 0 wait no more.
func (d *Disk) Slow(by time.Duration) error {
	if _, err := fmt.Fprintf(d.in, "%s%d\n", wordSlow, by); err != nil {
		return fmt.Errorf("telling the process of a disk: %w", err)
	}
	return d.hear(wordDone)
}

// End ends the process, which takes its file system away. What uses that gets errors then.
func (d *Disk) End() error {
	_ = d.in.Close()
	return d.cmd.Wait()
}

// hear waits for a word of the process.
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

// Main is the process that Start starts: `weir internal disk BELOW AT`. args are what follows
// disk. It serves until in ends. Signals that ask a whole tree to end do not end it: the
// servers still write then.
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
