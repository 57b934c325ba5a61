package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/result/resulttest"
)

// codeUnwritten is the exit code of the scripts' weir when a folder that it has
// written is not what docs/formats says.
const codeUnwritten = 99

// written holds every result folder below dir that has been written since then
// against docs/formats. All runs of this package's tests and scripts go through
// it.
func written(dir string, since time.Time) error {
	var errs []error
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != result.FileResult {
			return err
		}
		st, err := d.Info()
		if err == nil && st.ModTime().After(since.Add(-time.Second/10)) { // files are dated a tick of the kernel's early
			errs = append(errs, resulttest.Check(filepath.Dir(path)))
		}
		return err
	})
	if err = errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("what was written is not what docs/formats says: %w", err)
	}
	return nil
}

// audit runs weir and, where it ran well enough to write, holds what it wrote
// against docs/formats.
func audit(run func() int) int {
	since := time.Now()
	code := run()
	if err := written(".", since); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return codeUnwritten
	}
	return code
}
