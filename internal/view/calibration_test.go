package view

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/selftest"
)

// An interrupted calibration keeps its partial figures.
func TestInterruptedCalibrationDoesNotPass(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	p := &CalibrationPage{Out: &out}
	c, err := selftest.Bench{
		Measure: func(context.Context, selftest.Options) (*selftest.Figures, error) {
			return &selftest.Figures{Cores: 2}, nil
		},
		Check: func(_ context.Context, o selftest.Options) ([]selftest.Check, error) {
			x := selftest.Check{Name: "stall", Pass: true}
			o.OnCheck(x)
			cancel()
			return []selftest.Check{x}, ctx.Err()
		},
	}.Take(ctx, selftest.Options{OnCheck: p.Check}, p.Figures)
	if !errors.Is(err, context.Canceled) || !c.Interrupted || c.Pass || c.Figures == nil || len(c.Checks) != 1 {
		t.Errorf("%v, %+v", err, c)
	}
	if err := p.End(c); err != nil || !strings.Contains(out.String(), "pass  stall") || strings.Contains(out.String(), "can be trusted") {
		t.Errorf("%v, wrote\n%s", err, out.String())
	}
}

func TestUnwritableCalibrationFails(t *testing.T) {
	p := &CalibrationPage{Out: brokenPipe{}}
	p.Check(selftest.Check{Name: "stall", Pass: true})
	if err := p.End(&selftest.Calibration{Pass: true}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("kept %v; want the error of the first write", err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestCalibrationReportsMeasurableResolution(t *testing.T) {
	late := func(rate float64, p99 int64, reached bool) selftest.Punctuality {
		return selftest.Punctuality{Rate: rate, Reached: reached, Spread: selftest.Spread{P99: p99}}
	}
	f := &selftest.Figures{Lateness: []selftest.Punctuality{late(1000, 9000, true), late(100_000, 50_000, true), late(1_000_000, 1, false)}}
	want := "It tried rates and kept up to 100,000/s, with messages 50.0 µs late at p99. At that rate it can measure a p99 of 500 µs or more (lateness at most 10 % of it)."
	if got := resolution(f); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := resolution(&selftest.Figures{}); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
