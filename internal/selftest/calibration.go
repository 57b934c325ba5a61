package selftest

import (
	"context"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/host"
)

// A Calibration is the output of weir calibrate --json. Times are in ns.
type Calibration struct {
	Schema      string     `json:"schema"`
	Weir        string     `json:"weir"`
	Revision    string     `json:"revision,omitempty"` // of weir's source; absent: the build does not say
	Modified    bool       `json:"modified,omitempty"` // the source differed from it
	TakenAt     string     `json:"taken_at"`           // RFC 3339
	Host        host.Facts `json:"host"`
	Scale       float64    `json:"scale"`          // of the lengths of runs
	Only        []string   `json:"only,omitempty"` // the parts that were done; absent: all
	Pass        bool       `json:"pass"`           // every check that the host allows ran and passed
	Interrupted bool       `json:"interrupted"`
	Figures     *Figures   `json:"figures"` // null: interrupted before they were taken
	Checks      []Check    `json:"checks"`
	// Quoted says by disturbance whether the figures that runs call quotable are true; absent if left out.
	Quoted []Quoting `json:"quoted,omitempty"`
}

// A Bench provides the figures and the checks, normally those of this package.
type Bench struct {
	Measure func(context.Context, Options) (*Figures, error)
	Check   func(context.Context, Options) ([]Check, error)
	Quote   func(context.Context, Options) ([]Quoting, error)
}

// Take calibrates until ctx ends. show receives the figures before the checks run. The error says why
// it did not complete.
func (b Bench) Take(ctx context.Context, o Options, show func(*Figures)) (*Calibration, error) {
	revision, modified := buildinfo.Revision()
	c := &Calibration{
		Schema: "weir.calibration/v1", Weir: buildinfo.Version(), Revision: revision, Modified: modified,
		TakenAt: time.Now().UTC().Format(time.RFC3339), Host: host.Environment(ctx), Scale: o.Scale, Only: o.Only, Checks: []Check{},
	}
	c.Host.Hostname, c.Host.BootID = "", "" // the page is for publication
	var err error
	if o.Wants(PartFigures) {
		var figures *Figures
		if figures, err = b.Measure(ctx, o); err == nil {
			c.Figures = figures
			show(figures)
		}
	}
	if err == nil {
		var checks []Check
		if checks, err = b.Check(ctx, o); len(checks) > 0 {
			c.Checks = checks
		}
	}
	if err == nil && o.Runs > 0 && o.Wants(PartQuoted) {
		c.Quoted, err = b.Quote(ctx, o)
	}
	c.Interrupted = err != nil && ctx.Err() != nil
	failed, _ := c.Tests()
	c.Pass = err == nil && failed == 0 && (len(c.Checks) > 0 || len(o.Only) > 0) && Passed(c.Checks)
	return c, err
}

// Tests returns how many self-tests failed, of how many that this host can run.
func (c *Calibration) Tests() (failed, done int) {
	count := func(ran, passed bool) {
		if ran {
			done++
		}
		if !passed {
			failed++
		}
	}
	for i := range c.Checks {
		count(c.Checks[i].NotRun == "", c.Checks[i].Pass)
	}
	for i := range c.Quoted {
		count(c.Quoted[i].NotRun == "", c.Quoted[i].Passed())
	}
	if _, runs, enough := QuotedRight(c.Quoted); runs >= fewestTogether {
		count(true, enough)
	}
	return failed, done
}
