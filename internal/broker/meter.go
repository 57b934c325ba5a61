//go:build unix

package broker

import (
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	hosts "github.com/weirmq/weir/internal/host"
)

// A meter tracks the progress of a download. The package managers do the downloading, with their own
// mirrors, proxies and passwords, so only they know the total size.
type meter struct {
	mu    sync.Mutex
	now   *download // current download; nil: none
	began time.Time // start of the install
	first uint64    // bytes the host had received by then
	known bool      // whether first is known
}

// A download is one download of an install.
type download struct {
	began time.Time
	from  uint64       // bytes the host had received at its start
	total int64        // bytes; 0: unknown
	done  func() int64 // bytes so far; nil: what the host has received since
}

// progressEvery is how often an install reports its progress.
const progressEvery = 10 * time.Second

// run reports elapsed time and download progress of an install until ended is closed.
func (m *meter) run(ended <-chan struct{}, note func(string)) {
	m.mu.Lock()
	m.began = time.Now()
	m.first, m.known = hosts.Received()
	m.mu.Unlock()
	t := time.NewTicker(progressEvery)
	defer t.Stop()
	for {
		select {
		case <-ended:
			return
		case <-t.C:
		}
		received, known := hosts.Received()
		note(m.line(time.Now(), received, known))
	}
}

// begin starts a download of total bytes (0: unknown). done returns the bytes so far; if nil, the
// host's received bytes are used.
func (m *meter) begin(total int64, done func() int64) {
	received, _ := hosts.Received()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = &download{began: time.Now(), from: received, total: total, done: done}
}

// progress records the progress that a package manager reports.
func (m *meter) progress(done, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now != nil {
		m.now.total, m.now.done = total, func() int64 { return done }
	}
}

// end ends a download.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = nil
}

// line returns the progress line, given how many bytes the host has received.
func (m *meter) line(now time.Time, received uint64, known bool) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	line := fmt.Sprintf("installing for %d s", now.Sub(m.began)/time.Second)
	known = known && m.known && received >= m.first
	d := m.now
	if d == nil || d.total <= 0 || d.done == nil && !known {
		if known {
			line += "; the host received " + mebibytes(int64(received-m.first)) + " meanwhile"
		}
		if d != nil {
			line += "; size not told"
		}
		return line
	}
	done := int64(received - d.from)
	if d.done != nil {
		done = d.done()
	}
	done = max(0, min(done, d.total))
	left := "time left not known yet"
	if done > 0 {
		rest := now.Sub(d.began).Seconds() * float64(d.total-done) / float64(done)
		left = fmt.Sprintf("about %.0f s left", max(1, math.Ceil(rest)))
	}
	return fmt.Sprintf("%s; %.1f of %s, %s", line, float64(done)/(1<<20), mebibytes(d.total), left)
}

// mebibytes formats a number of bytes.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// filled returns a function for the total size of the files below a folder.
func filled(dir string) func() int64 {
	return func() (sum int64) {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil // files come and go
			}
			if st, err := d.Info(); err == nil {
				sum += st.Size()
			}
			return nil
		})
		return sum
	}
}

// units maps package managers' size units to bytes.
var units = map[string]float64{"bytes": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}

// sized parses a size and its unit, and returns 0 if it is invalid.
func sized(number, unit string) int64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || n < 0 || n > 1e9 {
		return 0
	}
	return int64(n * units[unit])
}
