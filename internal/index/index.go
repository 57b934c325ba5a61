// Package index keeps what a list shows of the runs below a folder, so that ten thousand
// of them list at once. The folders stay the truth: the index is read from them anew
// wherever it is missing, broken or out of date. It never writes into the folder.
package index

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the driver, in Go alone

	"github.com/weirmq/weir/internal/userfile"
)

// application marks a SQLite file as an index of weir, and version says which columns it
// has.
const (
	application = 0x77656972 // "weir"
	version     = 2
)

// ErrForeign is wrapped by Open where the file is not an index that weir wrote.
var ErrForeign = errors.New("is not an index of weir")

// An Index is the runs below one folder. Its methods may be called from any goroutine.
type Index struct {
	root *os.Root
	dir  string
	db   *sql.DB

	sync sync.Mutex // one Sync at a time
	read uint64     // result folders that were read, of all Syncs; under sync
}

const schema = `
CREATE TABLE runs (
	dir TEXT PRIMARY KEY, kind TEXT NOT NULL, stamp TEXT NOT NULL,
	name TEXT NOT NULL, scenario TEXT NOT NULL, driver TEXT NOT NULL, server TEXT NOT NULL, guarantee TEXT NOT NULL,
	started INTEGER NOT NULL, touched INTEGER NOT NULL, status TEXT NOT NULL, slo TEXT NOT NULL, wrong TEXT NOT NULL,
	rate REAL, received REAL, family TEXT NOT NULL, p50 REAL, p50_at_least INTEGER NOT NULL,
	p99 REAL, p99_at_least INTEGER NOT NULL, p999 REAL, p999_at_least INTEGER NOT NULL, words TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX newest ON runs (kind, started DESC, dir);
CREATE TABLE meta (dir TEXT NOT NULL);
`

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
	db, err := connect(ctx, abs, path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the index %s: %w", path, err), root.Close())
	}
	return &Index{root: root, dir: abs, db: db}, nil
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
	return filepath.Join(cache, hex.EncodeToString(sum[:8])+".sqlite"), nil
}

// Close closes the index. The file stays.
func (x *Index) Close() error { return errors.Join(x.db.Close(), x.root.Close()) }

// Dir is the absolute path of the folder.
func (x *Index) Dir() string { return x.dir }

func connect(ctx context.Context, dir, path string) (*sql.DB, error) {
	if err := ours(path); err != nil {
		return nil, err
	}
	db, err := database(path)
	if err != nil {
		return nil, err
	}
	if whole(ctx, db, dir) {
		return db, nil
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if db, err = database(path); err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d; %s", application, version, schema))
	if err == nil {
		_, err = db.ExecContext(ctx, "INSERT INTO meta (dir) VALUES (?)", dir)
	}
	if err == nil { // so that the file itself says what it is
		_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// database opens a file. What is read while an index is written is as it was before.
func database(path string) (*sql.DB, error) {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: url.Values{"_pragma": {
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(OFF)",
	}}.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(8)
	return db, nil
}

// ours refuses a file that weir did not write: it would be replaced.
func ours(path string) error {
	f, err := userfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	const marked, end = 68, 72 // where SQLite has the application's number
	head := make([]byte, end)
	switch n, err := io.ReadFull(f, head); {
	case errors.Is(err, io.EOF) && n == 0: // made, and never written
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case n < end, string(head[:16]) != "SQLite format 3\x00", binary.BigEndian.Uint32(head[marked:]) != application:
		return fmt.Errorf("it %w (a file that does not exist yet, or one that weir serve made)", ErrForeign)
	}
	return nil
}

// whole reports whether the index can be used for the folder.
func whole(ctx context.Context, db *sql.DB, dir string) bool {
	var found int
	var of, check string
	return db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found) == nil && found == version &&
		db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&check) == nil && check == "ok" &&
		db.QueryRowContext(ctx, "SELECT dir FROM meta").Scan(&of) == nil && of == dir
}
