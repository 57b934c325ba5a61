package cli

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/result"
)

// Reaches each exit code of a run with figures, and the reason reported with it.
func TestEveryRunExitCodeHasReason(t *testing.T) {
	t.Parallel()
	check := func(name string, s result.Status) result.Check {
		return result.Check{Name: name, Status: s, Value: "5 of 10 messages failed (50 %)", Limit: "0 % of what was sent (limits.failed)"}
	}
	slo := func(o result.Outcome) []result.SLO {
		return []result.SLO{{Expr: "e2e.p99 <= 1ms", Status: o, Unit: "ns"}}
	}
	for _, tt := range []struct {
		name    string
		command runCommand
		of      func(o *series.Outcome)
		code    Code
		want    string
	}{
		{"nothing", runCommand{}, func(*series.Outcome) {}, OK, ""},
		{"interrupted", runCommand{}, func(o *series.Outcome) { o.Result.Run.Interrupted = true }, Interrupted, "the run was interrupted"},
		{"books", runCommand{}, func(o *series.Outcome) { o.Accounting = fmt.Errorf("the books: %w", aFault{}) }, Failed, "the books: off by one"},
		{"driver", runCommand{}, func(o *series.Outcome) { o.Err = aFault{} }, Failed, "off by one"},
		{"files", runCommand{}, func(o *series.Outcome) { o.Written = errors.New("no room\nnone") }, Failed, "no room"},
		{"gone", runCommand{}, func(o *series.Outcome) { o.Gone = aFault{} }, Unreachable, "off by one"},
		{"lost", runCommand{}, func(o *series.Outcome) {
			o.Broken, o.Result.MessagesAll = true, result.Messages{Sent: 4000, Lost: 2, Duplicated: 1}
		}, Lost, "lost 2, duplicated 1, of 4,000 sent"},
		{"failed", runCommand{}, func(o *series.Outcome) {
			o.Result.Verdict = result.Verdict{Status: result.Suspect, Checks: []result.Check{check(judge.CheckFailed, result.Suspect)}}
		}, Refused, "5 of 10 messages failed (50 %); the limit is 0 % of what was sent (limits.failed)"},
		{"failed, as many as may", runCommand{}, func(o *series.Outcome) {
			o.Result.Verdict.Checks = []result.Check{check(judge.CheckFailed, result.Valid)}
		}, OK, ""},
		{"invalid", runCommand{}, func(o *series.Outcome) {
			o.Result.Verdict = result.Verdict{Status: result.Invalid, Checks: []result.Check{check("lateness", result.Invalid), check("cpu", result.Suspect)}}
		}, Invalid, "the run is INVALID for lateness: do not use its figures"},
		{"nothing sent", runCommand{}, func(o *series.Outcome) {
			none := check(judge.CheckRun, result.Invalid)
			none.Value = "nothing was sent"
			missed := slo(result.Fail)
			missed[0].Unit = "ns"
			o.Result.Verdict = result.Verdict{Status: result.Invalid, Checks: []result.Check{none, check(judge.CheckCPU, result.Suspect)}, SLO: missed}
		}, Invalid, "the run is INVALID: nothing was sent"},
		{"required", runCommand{require: result.Valid}, func(o *series.Outcome) {
			o.Result.Verdict = result.Verdict{Status: result.Suspect, Checks: []result.Check{check("hiccups", result.Suspect)}}
		}, Invalid, "the run is SUSPECT for hiccups, and --require asks for VALID"},
		{"ended at once", runCommand{}, func(o *series.Outcome) { o.Failed = "the generator was full" }, Invalid, "the run ended at once: the generator was full"},
		{"missed", runCommand{}, func(o *series.Outcome) { o.Result.Verdict.SLO = slo(result.Fail) }, Missed, "e2e.p99 <= 1ms failed"},
		{"not decided", runCommand{}, func(o *series.Outcome) { o.Result.Verdict.SLO = slo(result.Undecided) }, OK, ""},
		{"strict", runCommand{strict: true}, func(o *series.Outcome) { o.Result.Verdict.SLO = slo(result.Undecided) }, Missed, "e2e.p99 <= 1ms could not be decided, and --strict counts that as failed"},
	} {
		o := &series.Outcome{Result: &result.Result{Verdict: result.Verdict{Status: result.Valid}}, Run: series.Run{Scenario: new(scenario.Scenario)}}
		tt.of(o)
		if all := o.Wrong(); len(all) > 0 && !strings.Contains(all[0].Error(), tt.want) {
			t.Errorf("%s: it says %q; want %q", tt.name, all[0], tt.want)
		}
		x := tt.command.exit(o)
		if tt.code == OK {
			if x != nil {
				t.Errorf("%s: %+v", tt.name, x)
			}
			continue
		}
		if x == nil || x.Code != int(tt.code) || !strings.HasPrefix(x.Why, tt.want) {
			t.Errorf("%s: %+v; want %d, %q", tt.name, x, tt.code, tt.want)
		}
	}
}

// aFault is an error.
type aFault struct{}

func (aFault) Error() string { return "off by one" }

// Compares the last line on the terminal with the exit code, and a build server's tests with both.
func TestFailedRunPrintsReasonLast(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want map[int]bool // codes, on a quiet host and on a busy one
	}{
		{"an objective", []string{"--slo", "sent.rate >= 1M/s"}, map[int]bool{4: true, 5: true}},
		{"strict", []string{"--slo", "e2e.p99.99 <= 10s", "--strict"}, map[int]bool{4: true, 5: true}},
		{"runs that fail", []string{"--repeat", "2", "--slo", "sent.rate >= 1M/s"}, map[int]bool{4: true, 5: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := World{Dir: t.TempDir()}
			code, _, stderr := do(t, w, append([]string{"run", "--driver", "chan", "--rate", "200/s", "--warmup", "0s", "--measure", "300ms", "--out", "r", "--no-color"}, tt.args...)...)
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			if last := lines[len(lines)-1]; !tt.want[code] || !strings.HasPrefix(last, fmt.Sprintf("weir: exit code %d", code)) {
				t.Errorf("exit code %d, and the last line is %q", code, last)
			}
			reported, stdout, stderr := do(t, w, "report", "r", "--format", "junit")
			if reported != int(OK) {
				t.Fatalf("exit code %d: %s", reported, stderr)
			}
			// Of several runs the command has the worst code.
			failures := failuresOf(t, []byte(stdout.String()))
			if !slices.ContainsFunc(failures["exit code 0"], func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf("exit code %d: ", code)) }) {
				t.Errorf("exit code %d; failed tests: %q", code, failures)
			}
		})
	}
}

// failuresOf reads JUnit's XML as a build server does: the failed tests with their
// messages.
func failuresOf(t *testing.T, b []byte) map[string][]string {
	t.Helper()
	var all struct {
		Suites []struct {
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	must.Do(t, xml.NewDecoder(bytes.NewReader(b)).Decode(&all))
	failures := map[string][]string{}
	for _, s := range all.Suites {
		for _, c := range s.Cases {
			if c.Failure != nil {
				failures[c.Name] = append(failures[c.Name], c.Failure.Message)
			}
		}
	}
	return failures
}
