// Package index keeps what a list shows of the runs below a folder, in memory and in a
// file, so that ten thousand of them list at once. The folders stay the truth: the index
// is read from them anew wherever it is missing, broken or out of date. It never writes
// into the folder.
package index

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/weirmq/weir/internal/userfile"
)

// schema names the format of the file: a line of JSON for the head, and one for each row.
const schema = "weir.index/v2"

// longestLine bounds a line of the file. The texts of a row are bounded, see readRow.
const longestLine = 64 << 10

// ErrForeign is wrapped by Open where the file is not an index that weir wrote.
var ErrForeign = errors.New("is not an index of weir")

// An Index is the runs below one folder. Its methods may be called from any goroutine.
type Index struct {
	root *os.Root
	dir  string
	file string

	sync sync.Mutex // one Sync at a time
	read uint64     // result folders that were read, of all Syncs; under sync

	mu   sync.RWMutex
	rows map[string]*entry // by folder, at most mostRuns; under mu. An entry never changes
}

// An entry is a row, and the state of the folder that it was read from.
type entry struct {
	Row   Row
	Stamp string
	words string // the row's texts in lower case, for searches
}

func entryOf(r Row, stamp string) *entry {
	words := strings.Join([]string{r.Dir, r.Name, r.Scenario, r.Driver, r.Server, r.Guarantee, r.Status, r.SLO}, "\n")
	return &entry{Row: r, Stamp: stamp, words: strings.ToLower(words)}
}

// head is the first line of the file.
type head struct {
	Schema string `json:"schema"`
	Dir    string `json:"dir"`
	Rows   int    `json:"rows"`
}

// Open opens the index of the folder dir in the file at path, which it makes where there
// is none. An index that is broken, of another version or of another folder is made anew.
// A file that is something else is refused with ErrForeign. The caller closes it.
func Open(ctx context.Context, dir, path string) (*Index, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", dir, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of results: %w", err)
	}
	x := &Index{root: root, dir: abs, file: path}
	if x.rows, err = load(ctx, abs, path); err == nil && len(x.rows) == 0 {
		err = x.store(ctx) // so that a file that cannot be written is found now
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the index %s: %w", path, err), root.Close())
	}
	return x, nil
}

// FileIn is the file of the index of a folder below cache, and of that folder alone. It makes
// the folder cache.
func FileIn(cache, dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("making the folder of the index: %w", err)
	}
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(cache, hex.EncodeToString(sum[:8])+".jsonl"), nil
}

// Close closes the index. The file stays.
func (x *Index) Close() error { return x.root.Close() }

// Dir is the absolute path of the folder.
func (x *Index) Dir() string { return x.dir }

// load reads the rows of the folder dir that a file holds: none where the file is missing,
// damaged, of another version or of another folder. It refuses a file that weir did not
// write, since that would be replaced.
func load(ctx context.Context, dir, path string) (map[string]*entry, error) {
	rows := map[string]*entry{}
	f, err := userfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return rows, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, longestLine)
	if !lines.Scan() && lines.Err() == nil { // made, and never written
		return rows, nil
	}
	var h head
	if err := json.Unmarshal(lines.Bytes(), &h); err != nil || !strings.HasPrefix(h.Schema, "weir.index/") {
		return nil, fmt.Errorf("it %w (a file that does not exist yet, or one that weir serve made)", ErrForeign)
	}
	if h.Schema != schema || h.Dir != dir {
		return rows, nil
	}
	for lines.Scan() && len(rows) < mostRuns && ctx.Err() == nil {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			break
		}
		rows[e.Row.Dir] = entryOf(e.Row, e.Stamp)
	}
	if len(rows) != h.Rows {
		clear(rows)
	}
	return rows, ctx.Err()
}

// store writes the file, which is the old one or the new one at any instant.
func (x *Index) store(ctx context.Context) (err error) {
	x.mu.RLock()
	rows := make([]*entry, 0, len(x.rows))
	for _, e := range x.rows {
		rows = append(rows, e)
	}
	x.mu.RUnlock()
	f, err := os.CreateTemp(filepath.Dir(x.file), "."+filepath.Base(x.file)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriter(f)
	lines := json.NewEncoder(w)
	err = lines.Encode(head{schema, x.dir, len(rows)})
	for i := 0; i < len(rows) && err == nil; i++ {
		if err = ctx.Err(); err == nil {
			err = lines.Encode(rows[i])
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), x.file)
}
