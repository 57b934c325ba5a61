package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/disturb"
	"github.com/weirmq/weir/internal/finding"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

const (
	// quotedError is how far a figure that may be quoted may be off, unless its interval covers the truth.
	quotedError = 0.10
	// quotedShare is the least share of runs in which every such figure holds.
	quotedShare = 0.95
	quotedLimit = 60 * time.Second // for one run
)

// throttledCores is the quota of a throttled generator.
const throttledCores = 0.25

// A Quoting is the outcome of the runs under one disturbance: whether the figures that a run calls
// quotable are true.
type Quoting struct {
	Disturbance disturb.Kind   `json:"disturbance"`
	NotRun      string         `json:"not_run,omitempty"` // what the host lacks
	Runs        int            `json:"runs"`
	Right       int            `json:"right"`               // runs in which every quotable figure is true
	Valid       int            `json:"valid"`               // runs with the verdict VALID
	Rows        []QuotedRow    `json:"rows,omitempty"`      // by response and percentile
	Wrong       []QuotedFigure `json:"wrong,omitempty"`     // at most mostWrong
	BusyMost    float64        `json:"busy_most,omitempty"` // the most that the host was busy in a run
}

// mostWrong is how many wrong figures a Quoting shows.
const mostWrong = 20

// A QuotedRow counts one figure over runs.
type QuotedRow struct {
	Of       string  `json:"of"`
	P        float64 `json:"p"`
	Reported int     `json:"reported"` // runs whose samples support it
	Quotable int     `json:"quotable"`
	Near     int     `json:"near"`  // of those, within 10 %
	Right    int     `json:"right"` // of those, within 10 % or with the truth in the interval
}

// A QuotedFigure is one figure of one run beside the truth, in ns.
type QuotedFigure struct {
	System   string  `json:"system"`
	Of       string  `json:"of"`
	P        float64 `json:"p"`
	Truth    int64   `json:"truth_ns"`
	Reported int64   `json:"reported_ns"`
	Lo       *int64  `json:"lo_ns"`
	Hi       *int64  `json:"hi_ns"`
	Quotable bool    `json:"quotable"`
}

// Name is the figure as people write it: e2e p99.
func (f *QuotedFigure) Name() string { return f.Of + " " + finding.Percentile(f.P) }

// Near reports whether the figure is within 10 % of the truth.
func (f *QuotedFigure) Near() bool {
	return float64(abs(f.Reported-f.Truth)) <= quotedError*float64(f.Truth)
}

// Right reports whether the figure is near, or has an interval with two ends that covers the truth.
func (f *QuotedFigure) Right() bool {
	return f.Near() || f.Lo != nil && f.Hi != nil && *f.Lo <= f.Truth && f.Truth <= *f.Hi
}

// A QuotedRun is one run.
type QuotedRun struct {
	Disturbance disturb.Kind
	Effect      disturb.Effect
	System      string
	Figures     []QuotedFigure
	Result      *result.Result
	Tardiness   int64 // most by which the simulated system answered late, ns
}

// Right reports whether every quotable figure is true.
func (r *QuotedRun) Right() bool {
	return !slices.ContainsFunc(r.Figures, func(f QuotedFigure) bool { return f.Quotable && !f.Right() })
}

// Quote runs weir, o.Runs times during each kind of disturbance, and compares the figures that the
// runs call quotable with the truth. On an error it returns what it has.
func Quote(ctx context.Context, o Options) (all []Quoting, err error) {
	dir, err := os.MkdirTemp("", "weir-quoted-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for runs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return QuoteIn(ctx, o, dir, func(*QuotedRun) {})
}

// QuoteIn is Quote with the runs' folders kept in dir, and each called with every run.
func QuoteIn(ctx context.Context, o Options, dir string, each func(*QuotedRun)) (all []Quoting, err error) {
	o = o.defaults()
	for _, kind := range disturb.Kinds() {
		q, err := quoteAll(ctx, o, dir, kind, each)
		if err != nil {
			return all, err
		}
		all = append(all, q)
		if o.OnQuoting != nil {
			o.OnQuoting(q)
		}
	}
	return all, nil
}

// quoteAll does the runs of one kind.
func quoteAll(ctx context.Context, o Options, dir string, kind disturb.Kind, each func(*QuotedRun)) (Quoting, error) {
	q := Quoting{Disturbance: kind}
	if err := mayDisturb(o.Self, kind); err != nil {
		q.NotRun = err.Error()
		return q, nil
	}
	systems := simulateds()
	for i := range o.Runs {
		r, err := quoteOnce(ctx, o.Self, filepath.Join(dir, string(kind)+"-"+strconv.Itoa(i)), kind, systems[i%len(systems)], i/len(systems))
		if err != nil {
			return q, err
		}
		q.add(r)
		each(r)
	}
	return q, nil
}

// mayDisturb returns what the host lacks for a disturbance.
func mayDisturb(self string, kind disturb.Kind) error {
	if kind == disturb.Spin { // the simulated system must not be disturbed too
		if err := pace.CheckFIFO(); err != nil {
			return err
		}
	}
	d, err := disturb.New(self, disturb.Spec{Kind: kind, Cores: throttledCores})
	if err == nil {
		d.Discard()
	}
	return err
}

// stopEvery are the periods of the stops, of one run after another: how often a disturbance comes
// decides which percentile it reaches.
func stopEvery(turn int) time.Duration {
	periods := []time.Duration{500 * time.Millisecond, 211 * time.Millisecond, 97 * time.Millisecond, 1100 * time.Millisecond}
	return periods[turn%len(periods)]
}

// quoteOnce does one run.
func quoteOnce(ctx context.Context, self, dir string, kind disturb.Kind, s simulated, turn int) (_ *QuotedRun, err error) {
	ctx, cancel := context.WithTimeout(ctx, quotedLimit)
	defer cancel()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	d, err := disturb.New(self, disturb.Spec{Kind: kind, Every: stopEvery(turn), Cores: throttledCores})
	if err != nil {
		return nil, err
	}
	defer d.Discard()
	out := filepath.Join(dir, "run")
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }()
	generator, err := guard.Start(ctx, self, guard.Spec{
		Args: d.Command(
			self, "run", "--driver", "exec", "--option", "command="+strings.Join([]string{self, "internal", "simulated", s.name, dir, d.Outside()}, ","),
			"--rate", strconv.Itoa(s.rate)+"/s", "--size", strconv.Itoa(quotedSize)+"B", "--settle", "none",
			"--warmup", quotedWarmUp.String(), "--measure", quotedMeasure.String(), "--drain", "5s", "--quiet", "--no-color", "--out", out,
		),
		Env: os.Environ(), Dir: dir, Group: d.Group(), Stdout: output, Stderr: output, Grace: time.Second,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		exit := (*guard.ExitError)(nil) // that of an INVALID run, which has its result
		if stopped := generator.Stop(context.WithoutCancel(ctx)); !errors.As(stopped, &exit) {
			err = errors.Join(err, stopped)
		}
	}()
	r := &QuotedRun{Disturbance: kind, System: s.name}
	if err := began(ctx, generator, dir); err != nil {
		return nil, fmt.Errorf("running against a simulated system: %w%s", err, said(output.Name()))
	}
	end, err := d.Start(ctx, generator.Pid())
	if err != nil {
		return nil, err
	}
	select {
	case <-generator.Done():
	case <-ctx.Done():
		err = ctx.Err()
	}
	effect, ended := end()
	if err = errors.Join(err, ended); err != nil {
		return nil, fmt.Errorf("disturbing a run: %w%s", err, said(output.Name()))
	}
	r.Effect = effect
	if err := r.compare(&s, dir, out); err != nil {
		return nil, fmt.Errorf("%w%s", err, said(output.Name()))
	}
	return r, nil
}

// began waits until the first message has reached the simulated system.
func began(ctx context.Context, generator *guard.Process, dir string) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(beganFile(dir)); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-generator.Done():
			return errors.New("it ended before the first message")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// said returns the end of what a run wrote.
func said(path string) string {
	text, _ := os.ReadFile(path)
	return "\n" + strings.TrimSpace(string(text[max(0, len(text)-2000):]))
}

// compare reads the run's result and the system's record.
func (r *QuotedRun) compare(s *simulated, dir, out string) error {
	saved, err := result.Read(out)
	if err != nil {
		return err
	}
	r.Result = saved.Result
	text, err := os.ReadFile(recordFile(dir))
	if err != nil {
		return err
	}
	var visits []Visit
	if err := json.Unmarshal(text, &visits); err != nil {
		return err
	}
	for _, v := range visits {
		if v.Replied > 0 {
			r.Tardiness = max(r.Tardiness, v.Replied-v.Planned)
		}
	}
	truth := s.truth(visits)
	for _, response := range judge.Responses(&r.Result.Latency) {
		for i := range response.All.Percentiles {
			row := &response.All.Percentiles[i]
			if row.P >= 100 || !row.Supported {
				continue
			}
			r.Figures = append(r.Figures, QuotedFigure{
				System: s.name, Of: response.Name, P: row.P, Truth: truth[measure.Rank(row.P, uint64(len(truth)))-1],
				Reported: row.NS, Lo: row.LoNS, Hi: row.HiNS, Quotable: quotable(r.Result, &response, row),
			})
		}
	}
	return nil
}

// quotable reports whether a run calls a figure quotable.
func quotable(r *result.Result, response *judge.Response, row *result.Percentile) bool {
	if r.Verdict.Status == result.Invalid || row.AtLeast {
		return false
	}
	f := judge.FigureOf(r, response.Name+"."+finding.Percentile(row.P))
	return f != nil && f.Quotable
}

// add counts a run.
func (q *Quoting) add(r *QuotedRun) {
	q.Runs++
	if r.Result.Verdict.Status == result.Valid {
		q.Valid++
	}
	if u := r.Result.Host.Usage; u != nil && u.HostBusyShare != nil {
		q.BusyMost = max(q.BusyMost, *u.HostBusyShare)
	}
	if r.Right() {
		q.Right++
	}
	for _, f := range r.Figures {
		i := slices.IndexFunc(q.Rows, func(row QuotedRow) bool { return row.Of == f.Of && row.P == f.P })
		if i < 0 {
			i = len(q.Rows)
			q.Rows = append(q.Rows, QuotedRow{Of: f.Of, P: f.P})
		}
		row := &q.Rows[i]
		row.Reported++
		if !f.Quotable {
			continue
		}
		row.Quotable++
		if f.Near() {
			row.Near++
		}
		if f.Right() {
			row.Right++
		} else if len(q.Wrong) < mostWrong {
			q.Wrong = append(q.Wrong, f)
		}
	}
}

// Passed reports whether no more runs quote a wrong figure than a judge that is right in 95 % of its runs may
// have by chance. A judge that quotes nothing at all where nothing disturbs the run does not pass.
func (q *Quoting) Passed() bool {
	if q.NotRun != "" {
		return true
	}
	_, quotable, _ := q.Figures()
	if q.Disturbance == disturb.None && quotable == 0 {
		return false
	}
	return q.Right > 0 && q.Runs-q.Right <= max(1, most(q.Runs, 1-quotedShare))
}

// fewestTogether is how many runs of all disturbances must quote nothing wrong in quotedShare of them. Of fewer,
// chance decides.
const fewestTogether = 100

// QuotedRight returns in how many runs of all disturbances every quotable figure is true, of how many runs, and
// whether this is enough.
func QuotedRight(all []Quoting) (right, runs int, enough bool) {
	for i := range all {
		right, runs = right+all[i].Right, runs+all[i].Runs
	}
	return right, runs, runs < fewestTogether || float64(right) >= quotedShare*float64(runs)
}

// Figures returns how many figures the samples support, how many of those are quotable, and how many of
// those are right.
func (q *Quoting) Figures() (reported, quotable, right int) {
	for _, r := range q.Rows {
		reported, quotable, right = reported+r.Reported, quotable+r.Quotable, right+r.Right
	}
	return reported, quotable, right
}
