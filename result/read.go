package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrSchema is wrapped by errors about a file of another kind, or of a version
// newer than this code.
var ErrSchema = errors.New("schema not understood")

// Saved is a result folder that was read.
type Saved struct {
	Dir    string
	Result *Result
	Files  []string // names, sorted; the files only
}

// Read reads the result.json of a folder and lists the folder's files. It
// ignores fields that it does not know and refuses a newer version with
// ErrSchema; without a result.json it fails with fs.ErrNotExist.
func Read(dir string) (*Saved, error) {
	path := filepath.Join(dir, FileResult)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read result folder: %w", err)
	}
	r, err := Unmarshal(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read result folder: %w", err)
	}
	s := &Saved{Dir: dir, Result: r}
	for _, e := range entries {
		if !e.IsDir() {
			s.Files = append(s.Files, e.Name())
		}
	}
	return s, nil
}

// Unmarshal reads the text of a result.json.
func Unmarshal(b []byte) (*Result, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, err
	}
	if err := checkSchema(head.Schema, Schema); err != nil {
		return nil, err
	}
	r := new(Result)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, err
	}
	return r, nil
}

// checkSchema accepts the schema that this code writes and older versions of
// it.
func checkSchema(got, want string) error {
	kind, version, _ := strings.Cut(want, "/v")
	most, err := strconv.Atoi(version)
	if err != nil {
		return fmt.Errorf("%w: %q", ErrSchema, want)
	}
	gotKind, gotVersion, _ := strings.Cut(got, "/v")
	n, err := strconv.Atoi(gotVersion)
	switch {
	case gotKind != kind || err != nil || n < 1:
		return fmt.Errorf("%w: it is %q, not %q", ErrSchema, got, want)
	case n > most:
		return fmt.Errorf("%w: %q was written by a newer weir, this one reads up to %q", ErrSchema, got, want)
	}
	return nil
}
