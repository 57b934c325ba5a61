// Package serverlog excerpts what servers wrote to their logs at given times. While servers run, it
// reads only the length of their logs; it reads the content afterwards.
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

// Limits on what is kept while servers run.
const (
	mostFiles  = 64
	mostMarks  = 8192 // per file; beyond, every second one is dropped
	mostFormer = 4    // earlier files of a log
)

// A Log is a file that a server writes.
type Log struct {
	Process string // "server-2"
	Node    int
	Path    string
}

// A Follower records when logs grew, even if a server starts a new file. Its methods may be called on
// nil, which follows nothing.
type Follower struct {
	now  func() int64
	end  chan struct{}
	done chan struct{}

	mu   sync.Mutex
	logs []*followed
}

// followed is a log with its state.
type followed struct {
	Log
	files []*grown // the last is the current file
}

// grown is a file that is, or was, the log.
type grown struct {
	file *os.File
	info fs.FileInfo // identifies the file
	from int64       // its length when first seen; earlier content is ignored
	size int64       // its current length
	step int64       // distance between marks, ns
	mark []mark      // in order of time
}

// A mark is the length of a file at an instant.
type mark struct{ at, size int64 }

// Follow follows logs from now until Close. now is a clock of the host. It returns nil if there are no
// logs.
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

// look reads the length of all logs.
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

// look reads a log's length and identity. It reads the clock afterwards: what a line was written
// before.
func (x *followed) look(now func() int64) {
	info, err := os.Lstat(x.Path)
	var last *grown
	if len(x.files) > 0 {
		last = x.files[len(x.files)-1]
	}
	same := err == nil && last != nil && os.SameFile(info, last.info)
	if last != nil && (!same || info.Size() >= last.size) {
		if end, err := last.file.Stat(); err == nil { // also the last output to a renamed file
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
	if same { // truncated; its content is gone
		_ = last.file.Close()
		x.files = x.files[:len(x.files)-1]
	}
	if x.files = append(x.files, g); len(x.files) > mostFormer+1 {
		_ = x.files[0].file.Close()
		x.files = slices.Delete(x.files, 0, 1)
	}
}

// open opens a log if it is a regular file.
func open(path string) *grown {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	// No links, and non-blocking: it may be another file by now.
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

// grow records the file's length at an instant.
func (g *grown) grow(at, size int64) {
	if size <= g.size {
		return
	}
	g.size = size
	if n := len(g.mark); n > 1 && at-g.mark[n-2].at <= g.step { // the mark in between adds nothing
		g.mark[n-1] = mark{at, size}
		return
	}
	g.mark = append(g.mark, mark{at, size})
	if len(g.mark) < mostMarks {
		return
	}
	kept := g.mark[:0]
	for i := 1; i < len(g.mark); i += 2 { // keep the later of two: a line is never dated too early
		kept = append(kept, g.mark[i])
	}
	g.mark, g.step = kept, 2*g.step
}
