package userfile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// TestOnlyRegularFilesAreRead goes through what a path can name. None of them has
// anybody at its other end, so that whatever waits here waits for ever.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, size := range map[string]int{"file": 10, "empty": 0, "long": 11} {
		must.Do(t, os.WriteFile(at(name), []byte(strings.Repeat("x", size)), 0o600))
	}
	must.Do(t, errors.Join(
		os.Symlink("file", at("link")), os.Mkdir(at("folder"), 0o700), syscall.Mkfifo(at("pipe"), 0o600), os.Symlink("pipe", at("link to a pipe")),
	))
	l := must.Get(net.Listen("unix", at("socket")))(t)
	defer func() { _ = l.Close() }()

	for _, c := range []struct {
		path  string
		bytes int
		err   error
	}{
		{at("file"), 10, nil},
		{at("empty"), 0, nil},
		{at("link"), 10, nil},
		{at("long"), 0, ErrTooLong},
		{at("folder"), 0, ErrNotRegular},
		{at("pipe"), 0, ErrNotRegular},
		{at("link to a pipe"), 0, ErrNotRegular},
		{at("socket"), 0, ErrNotRegular},
		{"/dev/zero", 0, ErrNotRegular},
		{"/dev/null", 0, ErrNotRegular},
		{at("nothing"), 0, fs.ErrNotExist},
	} {
		b, err := Read(c.path, 10)
		if !errors.Is(err, c.err) || len(b) != c.bytes {
			t.Errorf("%s: %d bytes, %v; want %d, %v", c.path, len(b), err, c.bytes, c.err)
		}
		if err != nil && !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: the error does not name the file: %v", c.path, err)
		}
	}
}

// TestForeignSchemaIsReported, also where the rest of it has another shape.
func TestForeignSchemaIsReported(t *testing.T) {
	var v struct{ N int }
	if err := JSON([]byte(`{"schema":"a/v1","n":3}`), "a/v1", &v); err != nil || v.N != 3 {
		t.Errorf("its own schema: %v, %v", v, err)
	}
	if err := JSON([]byte(`{"schema":"a/v2","n":[]}`), "a/v1", &v); err == nil || err.Error() != `schema "a/v2" is not known (a/v1)` {
		t.Errorf("a newer schema: %v", err)
	}
}
