package cli

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/disturb"
	"github.com/weirmq/weir/internal/selftest"
)

var (
	passed = selftest.Check{
		Name: "stall", What: "it freezes", Pass: true, Attempts: 2, Samples: 1000,
		Lateness: &selftest.Spread{P50: 17, P99: 7260}, Tardiness: &selftest.Spread{P50: 3630, P99: 944_000},
		Rows: []selftest.Row{
			{What: "scheduled", Unit: selftest.Messages, Want: 1000, Got: 1000, OK: true, Says: true, Waiting: -1},
			{What: "response p75", Unit: selftest.Nanoseconds, Want: 2_500_000_000, Got: 2_510_000_000, Tolerance: 75_000_000, Host: 1_000_000, OK: true, Says: true, Waiting: 1_010_000},
		},
	}
	failed = selftest.Check{
		Name: "planted faults", What: "counted exactly", Why: "lost is 79 messages, the truth is 80", Attempts: 1, Samples: 2000,
		Rows: []selftest.Row{{What: "lost", Unit: selftest.Messages, Want: 80, Got: 79, Says: true, Waiting: -1}},
	}
)

// quoted are runs of which one is wrong, and ones that this host cannot do.
var quoted = []selftest.Quoting{
	{
		Disturbance: disturb.Stop, Runs: 4, Right: 3, Valid: 2,
		Rows:  []selftest.QuotedRow{{Of: "e2e", P: 99, Reported: 4, Quotable: 3, Near: 1, Right: 2}},
		Wrong: []selftest.QuotedFigure{{System: "constant", Of: "e2e", P: 99, Truth: 10_000_000, Reported: 28_600_000, Quotable: true}},
	},
	{Disturbance: disturb.Throttle, NotRun: "no control groups"},
}

func TestCalibrateReportsOutcome(t *testing.T) {
	bad := selftest.Quoting{Disturbance: disturb.Spin, Runs: 4, Right: 2}
	for _, tc := range []struct {
		name   string
		checks []selftest.Check
		quoted []selftest.Quoting
		err    error
		code   Code
		says   []string
	}{
		{"all passed", []selftest.Check{passed}, quoted, nil, OK, []string{
			"clock    29.1 ns a reading",
			"5,000,000/s with a driver that does nothing (noop): 200.0 ns a message of 64 B, 2.40 times the floor of 83.3 ns", "95 %: 2.10 to 2.70 times, 11 pairs",
			"messages at 1,000,000/s", "not reached: 900,000/s",
			"pass  stall: it freezes", "attempt 2", "generator late by p50 17 ns, p99 7.26 µs; simulated system late by p50 3.63 µs, p99 944 µs",
			"2.50 s", "2.51 s", "-75.0 ms  +76.0 ms", "1.01 ms", "All 2 self-tests passed",
			"pass  figures that may be quoted, generator stopped for 20 ms at a time: right in 3 of 4 runs",
			"2 VALID; 3 of 4 percentiles quotable", "wrong: e2e p99 of constant is 28.6 ms, the truth is 10.0 ms",
			"not run  figures that may be quoted, generator throttled by its control group: no control groups",
		}},
		{"a quotable figure is wrong too often", []selftest.Check{passed}, []selftest.Quoting{bad}, nil, Invalid, []string{
			"FAIL  figures that may be quoted, two programs spinning: right in 2 of 4 runs", "1 of 2 self-tests failed",
		}},
		{"one failed", []selftest.Check{passed, failed}, nil, nil, Invalid, []string{
			"FAIL  planted faults", "lost is 79 messages, the truth is 80", "<- wrong", "1 of 2 self-tests failed",
		}},
		{"none done", nil, nil, nil, Invalid, nil},
		{"a run did not work", []selftest.Check{passed}, nil, errors.New("no memory"), Failed, []string{"calibrating: no memory"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, asJSON := range []bool{false, true} {
				var stdout, stderr strings.Builder
				e := &env{World: World{Stdout: &stdout, Stderr: &stderr, Env: func(string) (string, bool) { return "", false }}, log: slog.New(slog.DiscardHandler)}
				c := &calibrateCommand{JSON: asJSON}
				code := c.calibrate(t.Context(), e, selftest.Bench{
					Measure: func(context.Context, selftest.Options) (*selftest.Figures, error) {
						f := &selftest.Figures{Cores: 2, Ceiling: selftest.Ceiling{MessagesPerSecond: 5e6, MessageNS: 200, FloorNS: 83.3, Ratio: 2.4, RatioLo: 2.1, RatioHi: 2.7, Pairs: 11}}
						f.Calibration.ClockCostNS = 29.1
						f.Lateness = []selftest.Punctuality{{Rate: 1e6, Sent: 9e5}}
						return f, nil
					},
					Check: func(_ context.Context, o selftest.Options) ([]selftest.Check, error) {
						for _, c := range tc.checks {
							o.OnCheck(c)
						}
						return tc.checks, tc.err
					},
					Quote: func(_ context.Context, o selftest.Options) ([]selftest.Quoting, error) {
						if o.Runs != disturbedRuns {
							t.Errorf("%d runs under each disturbance", o.Runs)
						}
						for _, q := range tc.quoted {
							o.OnQuoting(q)
						}
						return tc.quoted, nil
					},
				})
				if code != tc.code {
					t.Errorf("exit code %d; want %d", code, tc.code)
				}
				all := stdout.String() + stderr.String()
				for _, s := range tc.says {
					if !strings.Contains(strings.Join(strings.Fields(all), " "), strings.Join(strings.Fields(s), " ")) {
						t.Errorf("does not say %q:\n%s", s, all)
					}
				}
				if !asJSON {
					continue
				}
				var out selftest.Calibration
				if err := json.Unmarshal([]byte(stdout.String()), &out); err != nil {
					t.Fatalf("stdout is not one JSON object: %v\n%s", err, stdout.String())
				}
				if out.Pass != (tc.code == OK) || len(out.Checks) != len(tc.checks) || out.Figures.Cores != 2 || out.Schema != "weir.calibration/v1" {
					t.Errorf("JSON says %+v", out)
				}
			}
		})
	}
}

func TestAnInterruptEndsACalibration(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	code, stdout, stderr := do(t, World{Signals: signals}, "calibrate", "--json")
	if code != int(Interrupted) {
		t.Errorf("exit code %d; want %d\n%s", code, Interrupted, stderr)
	}
	var out selftest.Calibration
	if err := json.Unmarshal([]byte(stdout.String()), &out); err != nil || !out.Interrupted || out.Pass {
		t.Errorf("JSON (%v) says %s", err, stdout)
	}
}
