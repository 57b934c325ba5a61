// Package index caches the list entries of the runs below a folder, in memory and in a file, so that
// ten thousand runs are listed at once. The folders are authoritative: the index is rebuilt from them
// if it is missing, broken or out of date. It never writes into the folder.
package index

import (
	"bufio"
	"bytes"
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

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/userfile"
)

// schema is the format name of the file: one JSON line for the header, and one for each entry (see line).
const schema = "weir.index/v4"

// longestLine limits a line of the file. The texts of a row are limited too, see readRow.
const longestLine = 1 << 20

// ErrForeign is wrapped by Open if the file is not an index written by weir.
var ErrForeign = errors.New("is not an index of weir")

// An Index lists the runs below one folder. Its methods are safe for concurrent use.
type Index struct {
	root *os.Root
	dir  string
	file string

	sync sync.Mutex // one Sync at a time
	read uint64     // result folders read in all Syncs; guarded by sync

	mu   sync.RWMutex
	rows map[string]*entry // by folder, at most mostRuns; guarded by mu. Entries are immutable
	news uint64            // changes of rows so far; guarded by mu
}

// An entry is a row, and the state of the folder when it was read.
type entry struct {
	Row    Row
	Stamp  string
	record *compare.Record // nil for anything but a readable run that ended
	words  string          // the row's texts in lower case, for search
}

func entryOf(r Row, rec *compare.Record, stamp string) *entry {
	words := strings.Join([]string{r.Dir, r.Name, r.Scenario, r.Driver, r.Server, r.Guarantee, r.Status, r.SLO}, "\n")
	return &entry{Row: r, Stamp: stamp, record: rec, words: strings.ToLower(words)}
}

// head is the first line of the file.
type head struct {
	Schema string `json:"schema"`
	Dir    string `json:"dir"`
	Rows   int    `json:"rows"`
}

// Open opens the index of the folder dir in the file at path, and creates it if necessary. Without a path it is
// kept in memory only. A broken
// index, or one of another version or folder, is rebuilt. Any other file is rejected with ErrForeign.
// The caller must close the index.
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
		err = x.store(ctx) // so that an unwritable file is detected now
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the index %s: %w", path, err), root.Close())
	}
	return x, nil
}

// FileIn returns the path of a folder's own index file below cache. It creates the folder cache.
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

// Close closes the index and leaves the file.
func (x *Index) Close() error { return x.root.Close() }

// Dir returns the absolute path of the folder.
func (x *Index) Dir() string { return x.dir }

// News counts the changes of the index: what is made from its rows stays true as long as the number is the same.
func (x *Index) News() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.news
}

// load reads the rows for the folder dir from a file: none if the file is missing, damaged, or of
// another version or folder. It rejects a file that weir did not write, since that would be
// overwritten.
func load(ctx context.Context, dir, path string) (map[string]*entry, error) {
	rows := map[string]*entry{}
	if path == "" {
		return rows, nil
	}
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
	if !lines.Scan() && lines.Err() == nil { // created, but never written
		return rows, nil
	}
	if !bytes.HasPrefix(lines.Bytes(), []byte(`{"schema":"weir.index/`)) {
		return nil, fmt.Errorf("it %w (a file that does not exist yet, or one that weir serve made)", ErrForeign)
	}
	var h head
	if err := json.Unmarshal(lines.Bytes(), &h); err != nil || h.Schema != schema || h.Dir != dir { // cut short, or another's
		return rows, nil
	}
	var facts factTable
	for lines.Scan() && len(rows) < mostRuns && ctx.Err() == nil {
		e, err := facts.decode(lines.Bytes())
		if err != nil {
			break
		}
		rows[e.Row.Dir] = e
	}
	if len(rows) != h.Rows {
		clear(rows)
	}
	return rows, ctx.Err()
}

// store writes the file atomically, if there is to be one.
func (x *Index) store(ctx context.Context) (err error) {
	if x.file == "" {
		return nil
	}
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
	var facts factTable
	for i := 0; i < len(rows) && err == nil; i++ {
		if err = ctx.Err(); err == nil {
			err = lines.Encode(facts.line(rows[i]))
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
