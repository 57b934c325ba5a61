package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/weirmq/weir/internal/flock"
)

// An Issued describes a created token, without its secret.
type Issued struct {
	ID      string    `json:"id"`
	Made    time.Time `json:"made"`
	Ends    time.Time `json:"ends"`
	Revoked bool      `json:"revoked"`
	// While is a file whose lock is held by the process that the token is for; "": it ends with no process.
	While string `json:"while,omitempty"`
}

// Ended reports whether the process that the token is for has ended, however it ended.
func (i *Issued) Ended() bool { return i.While != "" && !flock.Held(i.While) }

// Limits of the list.
const (
	maxIssued  = 4096
	remembered = 30 * 24 * time.Hour // after a token's expiry
)

const schemaTokens = "weir.fleet-tokens/v1"

type issuedFile struct {
	Schema string   `json:"schema"`
	Tokens []Issued `json:"tokens"`
}

// List returns the created tokens, oldest first, including those that expired up to 30 days ago.
func (k *Keep) List() ([]Issued, error) {
	b, err := os.ReadFile(filepath.Join(k.dir, fileTokens))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f issuedFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(k.dir, fileTokens), err)
	}
	if f.Schema != schemaTokens {
		return nil, fmt.Errorf("%s: its schema is not %s", filepath.Join(k.dir, fileTokens), schemaTokens)
	}
	return f.Tokens, nil
}

// change rewrites the list.
func (k *Keep) change(edit func([]Issued) ([]Issued, error)) error {
	if k.fixed {
		return errFixed
	}
	lock, err := flock.Wait(context.Background(), filepath.Join(k.dir, fileLock), nil) // held only briefly
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	all, err := k.List()
	if err != nil {
		return err
	}
	if all, err = edit(all); err != nil {
		return err
	}
	b, err := json.MarshalIndent(issuedFile{schemaTokens, all}, "", "  ")
	if err != nil {
		return err
	}
	return write(filepath.Join(k.dir, fileTokens), append(b, '\n'))
}

// write atomically writes a file readable by its owner only. The lock must be held.
func write(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
