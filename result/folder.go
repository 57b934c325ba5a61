package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/measure"
)

// The files of a result folder.
const (
	FileResult      = "result.json"
	FileIntervals   = "intervals.hlog"
	FileScenario    = "scenario.yaml"
	FileEnvironment = "environment.json"
	FileEvents      = "events.jsonl"
	FileReport      = "report.html"
	FileHost        = "host.jsonl"
	FileLive        = "live.jsonl" // of a run in progress
)

// FileSeries is the plan of several runs, in their common folder.
const FileSeries = "series.json"

// ErrExists is wrapped by Create if something of that name already exists.
var ErrExists = errors.New("exists")

// A Folder is a result folder being written. Its methods may be called from any goroutine. Every
// error names the file; the first of each file is kept, and Close returns them all, so that a
// caller may continue measuring. What was written before an error stays: the logs are truncated to
// their last whole line.
type Folder struct {
	dir  string
	open func(name string, flag int, perm fs.FileMode) (*os.File, error) // os.OpenFile

	mu     sync.Mutex
	hlog   *appender
	lines  *LogWriter
	events *appender
	count  int
	host   *appender
	live   *appender // nil: nothing was counted, or the run has its result
	errs   []error
	closed bool
}

// Create makes dir and missing parents. If dir exists, in whatever form, it returns ErrExists.
func Create(dir string) (*Folder, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("create the parent of result folder %s: %w", dir, err)
	}
	switch err := os.Mkdir(dir, 0o755); {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("create result folder %s: it %w", dir, ErrExists)
	case err != nil:
		return nil, fmt.Errorf("create result folder %s: %w", dir, err)
	}
	return &Folder{dir: dir, open: os.OpenFile}, nil
}

// Reopen returns an existing folder, so that its report can be rewritten.
func Reopen(dir string) *Folder { return &Folder{dir: dir, open: os.OpenFile} }

// Dir returns the folder's path as it was given.
func (f *Folder) Dir() string { return f.dir }

// StartIntervals starts intervals.hlog; instants count from epoch, weir is the version of the
// writer. It is called once, before the first line.
func (f *Folder) StartIntervals(epoch time.Time, weir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hlog != nil {
		return fmt.Errorf("start %s: it was started before", FileIntervals)
	}
	f.hlog = f.appendTo(FileIntervals)
	lines, err := NewLogWriter(f.hlog, epoch, weir)
	if err != nil {
		return f.keep(err)
	}
	f.lines = lines
	return nil
}

// AppendInterval writes a line for each distribution and phase with counts in the interval. The
// lines reach the operating system before it returns.
func (f *Folder) AppendInterval(in *measure.Interval) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range in.Kinds {
		for p := range in.Kinds[k] {
			if c := &in.Kinds[k][p]; c.Total() > 0 {
				if err := f.line(Tag(measure.Kind(k), measure.Phase(p)), in.From, in.To, c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// AppendCensored writes the line of a distribution's censored samples, at the end of a run; from
// and to are the run's. It writes none if c is empty.
func (f *Folder) AppendCensored(k measure.Kind, p measure.Phase, from, to int64, c *measure.Counts) error {
	if c.Total() == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.line(CensoredTag(k, p), from, to, c)
}

func (f *Folder) line(tag string, from, to int64, c *measure.Counts) error {
	if f.lines == nil {
		if f.hlog != nil && f.hlog.err != nil {
			return f.hlog.err // its head could not be written
		}
		return fmt.Errorf("append to %s: it was not started", FileIntervals)
	}
	if err := f.lines.Write(tag, from, to, c); err != nil {
		if f.hlog.err == nil { // not an error of the file
			err = fmt.Errorf("append to %s: %w", f.hlog.path, err)
		}
		return f.keep(err)
	}
	return nil
}

// AppendEvent appends a line to events.jsonl, creating it if necessary.
func (f *Folder) AppendEvent(e Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events == nil {
		if err := f.startEvents(); err != nil {
			return err
		}
	}
	err := f.record(f.events, FileEvents, e)
	if err == nil {
		f.count++
	}
	return err
}

// AppendSample appends a line to host.jsonl, creating it if necessary.
func (f *Folder) AppendSample(s host.Sample) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.host == nil {
		f.host = f.appendTo(FileHost)
		if _, err := fmt.Fprintf(f.host, "{\"schema\": %q}\n", SchemaHost); err != nil {
			return f.keep(err)
		}
	}
	return f.record(f.host, FileHost, s)
}

// AppendProgress appends a line to live.jsonl, creating it if necessary. WriteResult removes the file.
func (f *Folder) AppendProgress(p Progress) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.live == nil {
		f.live = f.appendTo(FileLive)
		if _, err := fmt.Fprintf(f.live, "{\"schema\": %q}\n", SchemaLive); err != nil {
			return f.keep(err)
		}
	}
	return f.record(f.live, FileLive, p)
}

// record appends a line to a log. The lock must be held.
func (f *Folder) record(a *appender, name string, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("append to %s: %w", name, err)
	}
	_, err = a.Write(append(line, '\n'))
	return f.keep(err)
}

func (f *Folder) startEvents() error {
	f.events = f.appendTo(FileEvents)
	_, err := fmt.Fprintf(f.events, "{\"schema\": %q}\n", SchemaEvents)
	return f.keep(err)
}

// Events returns how many events have been written.
func (f *Folder) Events() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// WriteResult writes or replaces result.json. It sets the schema and the lists that must not be
// null.
func (f *Folder) WriteResult(r *Result) error {
	b, err := Marshal(r)
	if err != nil {
		return fmt.Errorf("write %s: %w", FileResult, err)
	}
	if err := f.write(FileResult, b); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.live == nil {
		return nil
	}
	err = f.live.close()
	f.live = nil
	return f.keep(errors.Join(err, os.Remove(filepath.Join(f.dir, FileLive))))
}

// Marshal returns r as the text of result.json, with schema and required lists set; it does not
// modify r.
func Marshal(r *Result) ([]byte, error) {
	out := *r
	out.Schema = Schema
	out.Verdict.Checks = present(out.Verdict.Checks)
	out.Verdict.SLO = present(out.Verdict.SLO)
	out.Intervals = present(out.Intervals)
	if out.System.Options == nil {
		out.System.Options = map[string]any{}
	}
	return marshal(&out)
}

func present[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // ">= 10ms" stays readable
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// WriteEnvironment writes environment.json.
func (f *Folder) WriteEnvironment(e *Environment) error {
	out := *e
	out.Schema = SchemaEnvironment
	out.Hosts = present(out.Hosts)
	if out.System.Settings == nil {
		out.System.Settings = map[string]string{}
	}
	b, err := marshal(&out)
	if err != nil {
		return fmt.Errorf("write %s: %w", FileEnvironment, err)
	}
	return f.write(FileEnvironment, b)
}

// WriteScenario writes the resolved scenario, which names its own version.
func (f *Folder) WriteScenario(yaml []byte) error { return f.write(FileScenario, yaml) }

// WriteSeries writes the plan of several runs, as JSON, into their common folder.
func (f *Folder) WriteSeries(plan any) error {
	b, err := marshal(plan)
	if err != nil {
		return fmt.Errorf("write %s: %w", FileSeries, err)
	}
	return f.write(FileSeries, b)
}

// WriteReport writes the page that shows the run in a browser.
func (f *Folder) WriteReport(html []byte) error { return f.write(FileReport, html) }

// WriteHGRM writes a distribution's percentile table to the file of its kind.
func (f *Folder) WriteHGRM(k measure.Kind, c *measure.Counts, censored uint64) error {
	var b bytes.Buffer
	if err := WriteHGRM(&b, k.String(), c, censored); err != nil {
		return err
	}
	return f.write(HGRMName(k), b.Bytes())
}

// HGRMName returns the name of the percentile table of a kind: the headline
// ones are send.hgrm, e2e.hgrm and rtt.hgrm.
func HGRMName(k measure.Kind) string {
	switch k {
	case measure.SendResponse:
		return "send.hgrm"
	case measure.E2EResponse:
		return "e2e.hgrm"
	case measure.RTTResponse:
		return "rtt.hgrm"
	}
	return k.String() + ".hgrm"
}

// Close closes the logs and returns every error since Create, joined. A folder without events gets
// an empty events.jsonl. A second Close returns the same.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		if f.events == nil {
			_ = f.startEvents() // the error is kept
		}
		for _, a := range []*appender{f.hlog, f.events, f.host, f.live} {
			if a != nil {
				_ = f.keep(a.close())
			}
		}
	}
	return errors.Join(f.errs...)
}

// keep records an error, once.
func (f *Folder) keep(err error) error {
	if err == nil {
		return nil
	}
	if slices.Contains(f.errs, err) {
		return err
	}
	f.errs = append(f.errs, err)
	return err
}

// write replaces a file atomically: a reader sees the old or the new.
func (f *Folder) write(name string, b []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := filepath.Join(f.dir, name)
	if err := f.replace(path, b); err != nil {
		return f.keep(fmt.Errorf("write %s: %w", path, err))
	}
	return nil
}

func (f *Folder) replace(path string, b []byte) error {
	temp := path + ".tmp"
	file, err := f.open(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	if err == nil {
		err = file.Sync() // some file systems report a full disk only here
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp) // report the first error
	}
	return err
}

// An appender writes whole lines to a log. After its first error it writes nothing more: a log with
// a hole would not add up.
type appender struct {
	path string
	file *os.File
	size int64
	err  error
}

func (f *Folder) appendTo(name string) *appender {
	a := &appender{path: filepath.Join(f.dir, name)}
	file, err := f.open(a.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		a.err = fmt.Errorf("create %s: %w", a.path, err)
	}
	a.file = file
	return a
}

// Write appends b, which must consist of whole lines.
func (a *appender) Write(b []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	n, err := a.file.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		a.err = fmt.Errorf("append to %s: %w", a.path, err)
		_ = a.file.Truncate(a.size) // readers skip what cannot be truncated
		return n, a.err
	}
	a.size += int64(n)
	return n, nil
}

func (a *appender) close() error {
	if a.file == nil {
		return a.err
	}
	err := a.err
	if e := a.file.Sync(); err == nil && e != nil {
		err = fmt.Errorf("append to %s: %w", a.path, e)
	}
	if e := a.file.Close(); err == nil && e != nil {
		err = fmt.Errorf("close %s: %w", a.path, e)
	}
	a.file = nil
	return err
}
