package history

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/internal/userfile"
)

// A Memo keeps what searches for changes found, in memory and in a file. They take almost all the time of a history,
// and a history of yesterday's runs and one more repeats all of them but those of one series. What it keeps depends on
// the values alone, so that it is never out of date. Its methods are safe for concurrent use, and a nil Memo keeps
// nothing.
type Memo struct {
	file, version string

	mu    sync.Mutex
	old   map[string][]stats.ChangePoint // of the file
	found map[string][]stats.ChangePoint // of this process, at most mostKept
	news  bool                           // found has what old lacks
}

const (
	memoSchema = "weir.changes/v1"
	mostKept   = 10_000   // searches: a series takes up to 30
	longest    = 16 << 20 // of the file, in bytes
)

// memoFile is the file of a Memo.
type memoFile struct {
	Schema string                         `json:"schema"`
	Found  map[string][]stats.ChangePoint `json:"found"`
}

// OpenMemo reads the memo in a file, which need not exist; "" keeps it in memory only. Another version of weir may find
// something else, and has entries of its own.
func OpenMemo(file, version string) *Memo {
	m := &Memo{file: file, version: version, found: map[string][]stats.ChangePoint{}}
	var f memoFile
	if b, err := userfile.Read(file, longest); err == nil && userfile.JSON(b, memoSchema, &f) == nil {
		m.old = f.Found
	}
	return m
}

// changePoints is stats.ChangePoints.
func (m *Memo) changePoints(x []float64, alpha float64, seed uint64) []stats.ChangePoint {
	if m == nil {
		return stats.ChangePoints(x, alpha, seed)
	}
	key := m.key(x, alpha, seed)
	m.mu.Lock()
	points, known := m.found[key]
	if !known {
		points, known = m.old[key]
	}
	m.mu.Unlock()
	if !known {
		points = stats.ChangePoints(x, alpha, seed)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.found) >= mostKept {
		clear(m.found)
	}
	m.found[key] = points
	m.news = m.news || !known
	return points
}

// key is a checksum of all that a search depends on.
func (m *Memo) key(x []float64, alpha float64, seed uint64) string {
	b := append([]byte(m.version), 0)
	for _, v := range append([]float64{alpha}, x...) {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(b, seed))
	return hex.EncodeToString(sum[:16])
}

// Save writes the file if something is new. It keeps what this process used, and of the rest what there is room for.
func (m *Memo) Save() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == "" || !m.news {
		return nil
	}
	for key, points := range m.old {
		if len(m.found) >= mostKept {
			break
		}
		m.found[key] = points
	}
	b, err := json.Marshal(memoFile{memoSchema, m.found})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(m.file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(m.file), "."+filepath.Base(m.file)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), m.file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	m.news = false
	return nil
}
