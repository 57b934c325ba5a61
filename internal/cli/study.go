package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weirmq/weir/internal/runs"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// A study is a folder with several runs and a file that says what they came to: a search,
// or a suite.
type study struct {
	*env
	kind                 string // as its user calls it
	dir                  string // as the user is told of it; "" until create
	quiet, noColor, json bool

	require result.Status     // the least verdict of a run that will do
	fleet   *runs.Fleet       // that does the runs, gathered; nil: this process
	files   map[string][]byte // that its scenarios read, for a fleet
}

// create makes the folder: out, or one in results with a name that begins with the time.
func (s *study) create(out *string, name string) error {
	dir := filepath.Join("results", time.Now().UTC().Format("20060102T150405Z")+"-"+name)
	if out != nil {
		dir = *out
	}
	if dir == "" {
		return errors.New("--out: is empty (a folder that does not exist yet, or leave it out)")
	}
	if _, err := result.Create(s.path(dir)); err != nil {
		if errors.Is(err, result.ErrExists) {
			return fmt.Errorf("--out: %s %w (a folder that does not exist yet)", dir, result.ErrExists)
		}
		return fmt.Errorf("making the folder of the %s: %w (--out DIR names another)", s.kind, err)
	}
	s.dir = dir
	return nil
}

// keep writes a file of the folder: whole, or as it was before.
func (s *study) keep(name string, content []byte) error {
	path := s.path(filepath.Join(s.dir, name))
	err := os.WriteFile(path+".new", content, 0o644) //nolint:gosec // G306: a result is for all to read
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// kept reads the JSON file of a study's folder, of at most so many bytes, into v, which
// must be of that schema. It returns the bytes.
func (e *env) kept(dir, name, kind string, most int64, v any, schema string) ([]byte, error) {
	path := filepath.Join(dir, name)
	b, err := userfile.Read(e.path(path), most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no %s (the folder of a %s)", dir, name, kind)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err == nil {
		err = json.Unmarshal(b, &head)
	}
	if err == nil && head.Schema != schema {
		err = fmt.Errorf("schema %q is not known (%s)", head.Schema, schema)
	}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return b, nil
}

// free returns a name for a run's folder. One that an interrupted run left behind stays:
// the run is done again beside it, with a number behind its name.
func (s *study) free(name string) string {
	found := name
	for i := 2; i <= 99; i++ {
		if _, err := os.Lstat(s.path(filepath.Join(s.dir, found))); errors.Is(err, fs.ErrNotExist) {
			break
		}
		found = name + "-" + strconv.Itoa(i)
	}
	return found
}

// once does one run in the folder, and tells what went wrong before it had a result. The
// outcome is nil where the run did not begin, and has no result where it was refused. The
// codes are those that the run deserves.
func (s *study) once(ctx context.Context, stop *halting, what *scenario.Scenario, name string, percentiles []float64) (*runs.Outcome, []Code) {
	c := &runCommand{quiet: s.quiet, noColor: s.noColor, json: s.json, require: s.require}
	series, err := runs.New(runs.Options{
		Dir: s.Dir, Out: filepath.Join(s.dir, name), Host: s.host(), Words: wordsOfRuns(), Percentiles: percentiles, Fleet: s.fleet, Files: s.files,
		Observe: func(r runs.Run) runs.Observer { return c.observe(s.env, stop, r) },
		Note:    func(format string, args ...any) { s.say("weir: "+format, args...) },
	}, what)
	if err != nil {
		s.complain(err)
		return nil, []Code{Failed}
	}
	defer func() {
		if err := series.Close(); err != nil {
			s.complain(err)
		}
	}()
	if err := series.Gather(ctx); err != nil {
		return nil, []Code{ungathered(s.env, err)}
	}
	var out *runs.Outcome
	for o := range series.All(ctx, stop.stop) {
		out = o
	}
	switch {
	case out == nil || out.Result == nil && out.Err == nil:
		return nil, []Code{Interrupted}
	case out.Result == nil:
		s.refuse(out)
		return out, []Code{codeOf(out.Err)}
	}
	return out, c.codes(out)
}

// answer is the document v: printed on stdout with --json, and the text is printed
// instead without it, or beside it on stderr.
func (s *study) answer(v any, text func() string) error {
	if s.json {
		if err := writeJSON(s.Stdout, v); err != nil || s.quiet {
			return err
		}
		_, err := fmt.Fprint(s.Stderr, text())
		return err
	}
	_, err := fmt.Fprint(s.Stdout, text())
	return err
}

// document writes v, the file of that name, in the folder.
func (s *study) document(name string, v any) error {
	var b bytes.Buffer
	if err := writeJSON(&b, v); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return s.keep(name, b.Bytes())
}
