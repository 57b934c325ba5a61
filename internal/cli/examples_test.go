package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// python runs a program of docs/examples, which were written from the pages of
// docs/formats alone, and returns what it prints and its exit code.
func python(t *testing.T, program string, args ...string) (out string, code int) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		needs.Host(t, "python3", err)
	}
	b, err := exec.CommandContext(t.Context(), python, append([]string{"../../docs/examples/" + program}, args...)...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(b), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b), 0
}

func TestThePageSufficesToParseResult(t *testing.T) {
	stuck := broken0(func(n uint64) fate {
		if n%20 == 7 {
			return swallow // never confirmed: censored
		}
		return pass
	})
	for _, tt := range []struct {
		name string
		w    World
		args []string
		tags []string
		says string
	}{
		{
			"an open loop",
			World{},
			[]string{"--driver", "chan", "--rate", "2000/s", "--warmup", "200ms", "--measure", "1s"},
			[]string{"send.response.measure", "send.lateness.measure", "e2e.service.measure"},
			"2000 samples",
		},
		{
			"a closed loop",
			World{},
			[]string{"--driver", "chan", "--rate", "max", "--warmup", "0s", "--messages", "5000"},
			[]string{"send.service.measure"},
			"5000 samples",
		},
		{
			"with censored samples",
			World{Drivers: []driver.Definition{stuck}},
			[]string{"--driver", "odd", "--rate", "500/s", "--warmup", "0s", "--measure", "1s", "--drain", "100ms"},
			[]string{"send.response.measure", "e2e.response.measure"},
			"25 censored",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.w.Dir = t.TempDir()
			dir := filepath.Join(tt.w.Dir, "r")
			code, _, stderr := do(t, tt.w, append([]string{"run", "--quiet", "--out", "r"}, tt.args...)...)
			if code != int(OK) && code != int(Invalid) && code != int(Refused) {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			for i, tag := range tt.tags {
				out, code := python(t, "read_result.py", dir, tag)
				if code != 0 || strings.Count(out, "same") < 10 {
					t.Errorf("%s: exit code %d\n%s", tag, code, out)
				}
				if i == 0 && !strings.Contains(out, tt.says) {
					t.Errorf("%s: it does not say %q\n%s", tag, tt.says, out)
				}
			}
			path := filepath.Join(dir, result.FileResult)
			b := must.Get(os.ReadFile(path))(t)
			b = regexp.MustCompile(`"ns": 1?`).ReplaceAll(b, []byte(`"ns": 9`))
			must.Do(t, os.WriteFile(path, b, 0o644))
			if out, code := python(t, "read_result.py", dir, tt.tags[0]); code != 1 || !strings.Contains(out, "DIFFERENT") {
				t.Errorf("with other percentiles in %s: exit code %d; want 1\n%s", result.FileResult, code, out)
			}
		})
	}
}

func TestThePageSufficesToParseHeader(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/formats/stamp.md"))(t)
	_, text, _ := strings.Cut(string(page), "```hex\n")
	text, _, _ = strings.Cut(text, "```")
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"the page's", nil, 0, "run 1592590337\nstream 3\nlate share 204\nbody CRC 2076663279\nsequence 1000000\ndue 5000000000\ndelay 12345\ngood\n"},
		{"with a body that was changed", []string{strings.Replace(text, "68 65", "69 65", 1)}, 1, "sequence 1000000\ndue 5000000000\ndelay 12345\ncorrupted"},
		{"with a sequence that was changed", []string{strings.Replace(text, "40 42", "41 42", 1)}, 1, "foreign: the header check"},
		{"of another version", []string{strings.Replace(text, "d7 02", "d7 01", 1)}, 1, "foreign: no stamp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if out, code := python(t, "read_stamp.py", tt.args...); code != tt.code || !strings.Contains(out, tt.says) {
				t.Errorf("exit code %d; want %d\n%s", code, tt.code, out)
			}
		})
	}
}
