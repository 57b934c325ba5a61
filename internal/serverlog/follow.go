// Package serverlog says what servers wrote into their logs at some time. While servers
// run it reads only how long their logs are; what they say it reads afterwards.
package serverlog

import (
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Every is how often the length of a log is read.
const Every = 100 * time.Millisecond

// Bounds of what is kept while servers run.
const (
	mostFiles  = 64
	mostMarks  = 8192 // of one file; with more, every second one goes
	mostFormer = 4    // files that a log was before
)

// A Log is a file that a server writes.
type Log struct {
	Process string // "server-2"
	Node    int
	Path    string
}

// A Follower notes when logs grew, also when a server starts its log anew. Its methods may
// be called on nil, which follows nothing.
type Follower struct {
	now  func() int64
	end  chan struct{}
	done chan struct{}

	mu   sync.Mutex
	logs []*followed
}

// followed is a log and what is known of it.
type followed struct {
	Log
	files []*grown // the last is the one that has the name
}

// grown is a file that has had the name of a log.
type grown struct {
	file *os.File
	info fs.FileInfo // which file it is
	from int64       // its length when it was first seen; what is before is old
	size int64       // its length now
	step int64       // marks are so far apart, ns
	mark []mark      // in the order of time
}

// A mark says that a file had a length at an instant.
type mark struct{ at, size int64 }

// Follow follows logs from here on, until Close. now is a clock of the host. It returns nil
// without logs.
func Follow(now func() int64, logs []Log) *Follower {
	if len(logs) == 0 {
		return nil
	}
	f := follow(now, logs)
	go f.run()
	return f
}

func follow(now func() int64, logs []Log) *Follower {
	f := &Follower{now: now, end: make(chan struct{}), done: make(chan struct{})}
	for _, l := range logs[:min(len(logs), mostFiles)] {
		x := &followed{Log: l}
		if g := open(l.Path); g != nil {
			g.from, g.size = g.info.Size(), g.info.Size()
			x.files = append(x.files, g)
		}
		f.logs = append(f.logs, x)
	}
	return f
}

func (f *Follower) run() {
	defer close(f.done)
	t := time.NewTicker(Every)
	defer t.Stop()
	for {
		select {
		case <-f.end:
			return
		case <-t.C:
			f.look()
		}
	}
}

// look reads how long all logs are.
func (f *Follower) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.logs {
		x.look(f.now)
	}
}

// Close stops following, and closes the logs.
func (f *Follower) Close() {
	if f == nil {
		return
	}
	close(f.end)
	<-f.done
	f.release()
}

func (f *Follower) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.logs {
		for _, g := range x.files {
			_ = g.file.Close()
		}
	}
	f.logs = nil
}

// look reads how long a log is, and which file. The clock is read after that: what a line
// was written before.
func (x *followed) look(now func() int64) {
	info, err := os.Lstat(x.Path)
	var last *grown
	if len(x.files) > 0 {
		last = x.files[len(x.files)-1]
	}
	same := err == nil && last != nil && os.SameFile(info, last.info)
	if last != nil && (!same || info.Size() >= last.size) {
		if end, err := last.file.Stat(); err == nil { // also what came last to a file that was renamed
			last.grow(now(), end.Size())
		}
	}
	if err != nil || same && info.Size() >= last.size {
		return
	}
	g := open(x.Path)
	if g == nil {
		return
	}
	g.grow(now(), g.info.Size())
	if same { // it was cut; what it said is gone
		_ = last.file.Close()
		x.files = x.files[:len(x.files)-1]
	}
	if x.files = append(x.files, g); len(x.files) > mostFormer+1 {
		_ = x.files[0].file.Close()
		x.files = slices.Delete(x.files, 0, 1)
	}
}

// open opens a log, where it is a plain file.
func open(path string) *grown {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	// Not a link, and not blocking: it may be another file by now.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil
	}
	return &grown{file: file, info: info, step: int64(Every)}
}

// grow notes that the file has a length.
func (g *grown) grow(at, size int64) {
	if size <= g.size {
		return
	}
	g.size = size
	if n := len(g.mark); n > 1 && at-g.mark[n-2].at <= g.step { // the one between says no more
		g.mark[n-1] = mark{at, size}
		return
	}
	g.mark = append(g.mark, mark{at, size})
	if len(g.mark) < mostMarks {
		return
	}
	kept := g.mark[:0]
	for i := 1; i < len(g.mark); i += 2 { // the later of two: a line is never told too early
		kept = append(kept, g.mark[i])
	}
	g.mark, g.step = kept, 2*g.step
}
