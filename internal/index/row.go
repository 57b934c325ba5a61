package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/series/capacity"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/internal/userfile"
	"github.com/weirmq/weir/result"
)

// A Kind says what a folder contains.
type Kind string

// The kinds of folders.
const (
	Ended    Kind = "ended"    // a run with a result
	Unended  Kind = "open"     // a run in progress or killed, without a result
	Capacity Kind = "capacity" // a search by weir capacity
	Suite    Kind = "suite"    // the table of weir suite
)

// Runs reports whether a folder of this kind is one run. The runs of the others are below them.
func (k Kind) Runs() bool { return k == Ended || k == Unended }

// A Row is the list entry of a folder. All texts come from its files.
type Row struct {
	Dir       string    `json:"dir"` // relative to the index's folder, with slashes
	Kind      Kind      `json:"kind"`
	Name      string    `json:"name"`               // of the run
	Scenario  string    `json:"scenario,omitempty"` // scenario that it repeats
	Repeat    int       `json:"repeat,omitempty"`   // number in its series, from 1; 0: a single run
	Driver    string    `json:"driver,omitempty"`
	Server    string    `json:"server,omitempty"` // name and version
	Host      string    `json:"host,omitempty"`   // where weir ran; "": unknown
	Guarantee string    `json:"guarantee,omitempty"`
	Mode      string    `json:"mode,omitempty"`
	Started   time.Time `json:"started,omitzero"` // zero: unknown
	Touched   time.Time `json:"touched"`          // last change of its files, by the file system's clock
	Status    string    `json:"status,omitempty"` // valid, suspect, invalid; "interrupted" takes precedence; "": no verdict
	SLO       string    `json:"slo,omitempty"`    // pass, fail or undecided: the worst of its objectives; "": none
	Wrong     string    `json:"wrong,omitempty"`  // why it cannot be read; "": it can

	Lost   uint64 `json:"lost,omitempty"` // messages of the whole run, like Failed
	Failed uint64 `json:"failed,omitempty"`

	Rate     *float64      `json:"rate,omitempty"`     // offered per second, in an open loop
	Received *float64      `json:"received,omitempty"` // per second; confirmed if nothing is received
	Family   string        `json:"family,omitempty"`   // what the percentiles are of: "e2e response"
	P50      *result.Value `json:"p50,omitempty"`      // ns; nil: not reported, or too few samples
	P99      *result.Value `json:"p99,omitempty"`
	P999     *result.Value `json:"p999,omitempty"`

	// Of a list only.
	Group   string `json:"-"` // of the row of several, and of those inside; "": none
	Members int    `json:"-"` // runs that the row stands for; 0: it is a folder's
}

// Limits on what is read of a folder.
const (
	longestResult   = 64 << 20
	longestScenario = 16 << 20
	longestEnv      = 16 << 20
	longestText     = 200 // of a text in a list, in bytes
	mostFacts       = 400 // settings and facts of a run
)

// readRow reads a folder. Errors are recorded in the row. The record is nil for anything but a run that ended.
func readRow(root *os.Root, f folder) (Row, *compare.Record) {
	row := Row{Dir: f.dir, Kind: f.kind, Touched: f.touched, Name: path.Base(f.dir)}
	var rec *compare.Record
	var err error
	switch f.kind {
	case Ended:
		rec, err = row.ended(root)
	case Capacity:
		err = row.searched(root)
	case Suite:
		err = row.ofSuite(root)
	case Unended:
		row.Started = f.touched
		row.named(root)
	}
	if err != nil {
		row.Wrong = pathless(err)
		if errors.Is(err, result.ErrTorn) {
			row.Wrong += " (copy the folder again from where weir wrote it)"
		}
	}
	for _, s := range []*string{&row.Name, &row.Scenario, &row.Driver, &row.Server, &row.Host, &row.Guarantee, &row.Mode, &row.Wrong, &row.Family} {
		*s = strings.ToValidUTF8(compare.Short(*s, longestText), "�")
	}
	if rec != nil {
		rec.Name, rec.Scenario = row.Name, row.Scenario
	}
	return row, rec
}

// pathless returns the error of a file without its path, which the row already has.
func pathless(err error) string {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return path.Base(at.Path) + ": " + at.Err.Error()
	}
	return err.Error()
}

func (r *Row) ended(root *os.Root) (*compare.Record, error) {
	x, err := parsed(root, r.Dir, result.FileResult, longestResult, result.Unmarshal)
	if err != nil {
		return nil, err
	}
	rec, err := r.recorded(root, x)
	r.Name, r.Scenario, r.Repeat, r.Driver, r.Guarantee = x.Run.Name, x.Run.Scenario(), x.Run.Repeat, x.System.Driver, x.System.Guarantee
	r.Mode, r.Lost, r.Failed = x.Run.Mode, x.MessagesAll.Lost, x.MessagesAll.Failed
	r.Server = strings.TrimSpace(x.System.Server.Name + " " + x.System.Server.Version)
	r.Started, _ = time.Parse(time.RFC3339Nano, x.Run.StartedAt)
	r.Status = string(x.Verdict.Status)
	if x.Run.Interrupted {
		r.Status = "interrupted " + r.Status
	}
	for i := range x.Verdict.SLO {
		switch o := x.Verdict.SLO[i].Outcome(); {
		case o == result.Fail, r.SLO == "", o == result.Undecided && r.SLO == string(result.Pass):
			r.SLO = string(o)
		}
	}
	if x.Run.Loop != result.LoopClosed {
		r.Rate = new(x.Throughput.OfferedPerS) // a copy: a pointer into the result would keep all of it
	}
	r.Received = new(x.Throughput.ConfirmedPerS)
	if perS, known := x.Throughput.Received(); known && x.Consuming() {
		r.Received = &perS
	}
	for _, d := range []struct {
		name string
		dist *result.Dist
	}{
		{"e2e response", x.Latency.E2E.Response},
		{"rtt response", x.Latency.RTT.Response},
		{"send response", x.Latency.Send.Response},
		{"e2e service", x.Latency.E2E.Service},
		{"rtt service", x.Latency.RTT.Service},
		{"send service", x.Latency.Send.Service},
	} {
		if d.dist != nil {
			r.Family, r.P50, r.P99, r.P999 = d.name, d.dist.Value(50), d.dist.Value(99), d.dist.Value(99.9)
			break
		}
	}
	return rec, err
}

// recorded reads what comparisons and histories need besides the result.
func (r *Row) recorded(root *os.Root, x *result.Result) (*compare.Record, error) {
	run := compare.Run{Result: x}
	var err error
	if run.Scenario, err = optional(root, path.Join(r.Dir, result.FileScenario), longestScenario); err != nil {
		return nil, err
	}
	switch b, err := optional(root, path.Join(r.Dir, result.FileEnvironment), longestEnv); {
	case err != nil:
		return nil, err
	case b != nil:
		if run.Environment, err = result.UnmarshalEnvironment(b); err != nil {
			return nil, fmt.Errorf("%s: %w", result.FileEnvironment, err)
		}
		for i := range run.Environment.Hosts[:min(1, len(run.Environment.Hosts))] {
			r.Host = run.Environment.Hosts[i].Hostname
		}
	}
	rec := compare.NewRecord(run)
	if len(rec.Facts) > mostFacts {
		return nil, fmt.Errorf("it has %d settings (at most %d)", len(rec.Facts), mostFacts)
	}
	return rec, nil
}

// optional reads a file that may be missing.
func optional(root *os.Root, name string, most int64) ([]byte, error) {
	b, err := userfile.ReadIn(root, name, most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

func (r *Row) searched(root *os.Root) error {
	x, err := search(root, r.Dir)
	if err != nil {
		return err
	}
	r.Scenario, r.Guarantee = strings.Join(x.Promise, ", "), string(x.Answer.Stop)
	r.Started = r.Touched
	if x.Answer.PassPerS > 0 {
		r.Rate = &x.Answer.PassPerS
	}
	if fail := x.Answer.Fail().System(); fail > 0 {
		r.Received = &fail
	}
	return nil
}

// Search reads the capacity search in a folder of the index. The error wraps ErrUnknown if there is
// none.
func (x *Index) Search(ctx context.Context, dir string) (*capacity.Report, error) {
	if row, err := x.Row(ctx, dir); err != nil || row.Kind != Capacity {
		return nil, errors.Join(err, fmt.Errorf("%s: %w", dir, ErrUnknown))
	}
	return search(x.root, dir)
}

func search(root *os.Root, dir string) (*capacity.Report, error) {
	return parsed(root, dir, capacity.File, capacity.MostBytes, capacity.Parse)
}

// parsed reads a file of a folder.
func parsed[T any](root *os.Root, dir, file string, most int64, parse func([]byte) (*T, error)) (*T, error) {
	b, err := userfile.ReadIn(root, path.Join(dir, file), most)
	if err != nil {
		return nil, err
	}
	x, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return x, nil
}

func (r *Row) ofSuite(root *os.Root) error {
	x, err := table(root, r.Dir)
	if err != nil {
		return err
	}
	r.Name, r.Scenario = "suite "+x.Suite.Name, x.Suite.Title
	r.Started, _ = time.Parse(time.RFC3339Nano, x.StartedAt)
	for i := range x.Rows {
		if r.Driver = x.Rows[i].Driver; r.Driver != x.Rows[0].Driver {
			r.Driver = several
			break
		}
	}
	return nil
}

// Table reads the table of the suite in a folder of the index. The error wraps ErrUnknown if there is
// none.
func (x *Index) Table(ctx context.Context, dir string) (*suite.Report, error) {
	if row, err := x.Row(ctx, dir); err != nil || row.Kind != Suite {
		return nil, errors.Join(err, fmt.Errorf("%s: %w", dir, ErrUnknown))
	}
	return table(x.root, dir)
}

func table(root *os.Root, dir string) (*suite.Report, error) {
	return parsed(root, dir, suite.FileReport, suite.MostBytes, suite.ParseReport)
}

// named fills in what a run without a result states about itself: the environment is written at its
// start.
func (r *Row) named(root *os.Root) {
	b, err := userfile.ReadIn(root, path.Join(r.Dir, result.FileScenario), longestScenario)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "name: "); ok {
			r.Scenario = strings.Trim(strings.TrimSpace(name), `"'`)
		}
		if driver, ok := strings.CutPrefix(line, "  driver: "); ok && r.Driver == "" {
			r.Driver = strings.Trim(strings.TrimSpace(driver), `"'`)
		}
	}
}
