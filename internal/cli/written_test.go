package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/result/resulttest"
)

// codeUnwritten is the exit code of the scripts' weir when a folder that it has
// written is not what docs/formats says.
const codeUnwritten = 99

// written checks every result folder below dir that was written since then against docs/formats, and judges
// it again. All runs of this package's tests and scripts go through it.
func written(dir string, since time.Time) error {
	var errs []error
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if path != dir && errors.Is(err, fs.ErrNotExist) {
			return nil // another weir, in the background of a script, has just removed it
		}
		if err != nil || d.IsDir() || d.Name() != result.FileResult {
			return err
		}
		st, err := d.Info()
		if err == nil && st.ModTime().After(since.Add(-time.Second/10)) { // files are dated a tick of the kernel's early
			errs = append(errs, resulttest.Check(filepath.Dir(path)), judgedAgain(filepath.Dir(path)))
		}
		return err
	})
	if err = errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("what was written is not what docs/formats says: %w", err)
	}
	return nil
}

// judgedAgain judges a stored result again, from the folder alone, and reports any difference from the
// stored verdict.
func judgedAgain(dir string) error {
	saved, err := result.Read(dir)
	if err != nil {
		return err
	}
	if r := saved.Result.Run; r.HorizonS == 0 && r.MeasureS > 0 {
		return nil // an older version wrote it, and a test copied it here
	}
	again := judge.Again(saved.Result)
	if unrepeated := append(again.Kept, again.Lacking...); len(unrepeated) > 0 {
		return fmt.Errorf("%s: the verdict lacks what it needs: %q", dir, unrepeated)
	}
	if diff := cmp.Diff(saved.Result.Verdict, again.Verdict, cmpopts.EquateEmpty()); diff != "" {
		return fmt.Errorf("%s: the verdict stored (-) and reached again (+):\n%s", dir, diff)
	}
	return nil
}

// audit runs weir and, if it got far enough to write, checks its output against docs/formats.
func audit(run func() int) int {
	since := time.Now()
	code := run()
	if err := written(".", since); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return codeUnwritten
	}
	return code
}
