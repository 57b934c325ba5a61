package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/commandline"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// secluded runs weir without access to anything of the user's: no servers, fleets or settings. It fails on
// control characters in the output and on undocumented exit codes. A verb ended by ctx may still write
// after the test.
func secluded(ctx context.Context, t *testing.T, dir string, args ...string) {
	t.Helper()
	var out, complaints watch
	code := Main(ctx, World{
		Args: args, Env: os.LookupEnv, Dir: dir, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &complaints,
		Drivers: all.Definitions(),
	})
	if code < 0 || code > int(Refused) && code != 130 {
		t.Errorf("%q: exit code %d\n%s", args, code, complaints.String())
	}
	if text := out.String() + complaints.String(); strings.ContainsAny(text, "\x00\x07\x1b\u009b\u202e") {
		t.Errorf("%q: a control character: %q", args, text)
	}
}

// alone redirects everything that weir looks for besides its arguments to a new folder, which it returns.
func alone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "TMPDIR", broker.VariableCache, "WEIR_FLEET_DIR"} {
		t.Setenv(name, filepath.Join(dir, strings.ToLower(name)))
	}
	return dir
}

// Gives every flag of every verb odd values. The fuzz tests of package scenario cover only the flags of
// keys. The context has ended, so that no value starts a server or a run.
func TestNoValueOfAFlagPanics(t *testing.T) {
	needs.Time(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := alone(t)
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	verbs := &commands{}
	verbs.Run.keys = commandline.NewKeys()
	verbs.Run.Keys = verbs.Run.keys.Plugin()
	parser := must.Get(kong.New(verbs))(t)
	tried := 0
	for _, leaf := range parser.Model.Leaves(false) {
		for _, flags := range leaf.AllFlags(false) {
			for _, f := range flags {
				if f.IsBool() {
					continue
				}
				for _, value := range []string{
					"", "-1", "NaN", "\x1b[2J\u202e\xff", ",=,{", "pipe", strings.Repeat("9", 4096),
				} {
					// Its path of verbs, and a word for each argument that it wants.
					args := strings.Fields(strings.TrimPrefix(leaf.Path(), "weir"))
					for _, p := range leaf.Positional {
						if p.Required {
							args = append(args, "none")
						}
					}
					secluded(ctx, t, dir, append(args, "--"+f.Name+"="+value)...)
					tried++
				}
			}
		}
	}
	t.Logf("%d values", tried)
	if tried < 300 {
		t.Errorf("only %d values were tried", tried)
	}
}

// Shows and compares folders in which one file is truncated, empty, changed or replaced. Package result
// tests reading such files; this tests what the verbs do with the rest of the folder.
func TestNoFolderOfResultsPanics(t *testing.T) {
	dir := alone(t)
	must.Do(t, makeSeries(filepath.Join(dir, "good"), 2, made{seed: 1}))
	runs, err := filepath.Glob(filepath.Join(dir, "good", "*"))
	if err != nil || len(runs) != 2 {
		t.Fatal(runs, err)
	}
	tried := 0
	for _, name := range []string{result.FileResult, result.FileIntervals, result.FileScenario, result.FileEnvironment} {
		path := filepath.Join(runs[0], name)
		whole := must.Get(os.ReadFile(path))(t)
		contents := [][]byte{nil, {0}, []byte("{}"), []byte("null"), []byte("\x1b[2J"), bytes.Repeat([]byte("["), 1<<14), append(bytes.Clone(whole), whole...)}
		for i := range 4 {
			contents = append(contents, whole[:i*len(whole)/4])
			changed := bytes.Clone(whole)
			changed[i*(len(whole)-1)/4] ^= 0x41
			contents = append(contents, changed)
		}
		for _, b := range contents {
			must.Do(t, os.WriteFile(path, b, 0o600))
			secluded(t.Context(), t, dir, "report", runs[0])
			secluded(t.Context(), t, dir, "compare", "good", "good")
			tried++
		}
		must.Do(t, os.Remove(path))
		must.Do(t, syscall.Mkfifo(path, 0o600))
		secluded(t.Context(), t, dir, "report", "good")
		secluded(t.Context(), t, dir, "compare", "good", "good")
		must.Do(t, os.Remove(path))
		must.Do(t, os.WriteFile(path, whole, 0o600))
	}
	if tried < 60 {
		t.Errorf("only %d folders were tried", tried)
	}
}
