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

// A meter knows how far a download is. The package managers download, with the mirrors,
// proxies and passwords of their own settings, so only they know how much is to come.
type meter struct {
	mu    sync.Mutex
	now   *download // under way; nil: none
	began time.Time // of the install
	first uint64    // what the host had received then
	known bool      // which is known
}

// A download is one of an install's.
type download struct {
	began time.Time
	from  uint64       // what the host had received then
	total int64        // bytes; 0: not told
	done  func() int64 // bytes so far; nil: what the host received since
}

// progressEvery is how often an install says how far it is.
const progressEvery = 10 * time.Second

// run says how long an install takes and how far its download is, until ended is closed.
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

// begin begins a download of so many bytes, 0 where that is not told. done says how many
// there are so far; without it, what the host receives counts.
func (m *meter) begin(total int64, done func() int64) {
	received, _ := hosts.Received()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = &download{began: time.Now(), from: received, total: total, done: done}
}

// told takes how many bytes of how many a package manager says that there are.
func (m *meter) told(done, total int64) {
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

// line says how far it is. The host has received so much.
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

// mebibytes writes a number of bytes.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// filled is how many bytes the files below a folder have.
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

// units are what package managers write sizes in.
var units = map[string]float64{"bytes": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}

// sized reads a size of so many of a unit; 0 where it is none.
func sized(number, unit string) int64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || n < 0 || n > 1e9 {
		return 0
	}
	return int64(n * units[unit])
}
