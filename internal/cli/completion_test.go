package cli

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/commandline"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/scenario"
)

// completed returns the words that `weir internal complete` answers.
func completed(t *testing.T, w World, words ...string) []string {
	t.Helper()
	w.Drivers = all.Definitions()
	code, stdout, stderr := do(t, w, append([]string{"internal", "complete"}, words...)...)
	if code != int(OK) || stderr.String() != "" {
		t.Errorf("complete %q: exit code %d, %s", words, code, stderr)
	}
	var got []string
	for line := range strings.Lines(stdout.String()) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		got = append(got, word)
	}
	return got
}

// driversFrom returns the drivers' names that begin with a text, with one before
// each.
func driversFrom(before, begin string) []string {
	var out []string
	for _, d := range all.Definitions() {
		if strings.HasPrefix(d.Name, begin) {
			out = append(out, before+d.Name)
		}
	}
	slices.Sort(out)
	return out
}

func TestCompletionsAtCursor(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"core.yaml": "weir: 1\nsystem:\n  driver: nats\n", "odd.yaml": "driver: [\n"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	drivers := driversFrom("", "")
	var levels []string
	for _, g := range []driver.Guarantee{driver.Buffered, driver.Written, driver.Received, driver.Replicated, driver.Persisted} {
		levels = append(levels, g.String())
	}
	for _, c := range []struct {
		line string // blanks part words; the last is the one being typed
		want []string
	}{
		{"ru", []string{"run"}},
		{"he", []string{"help"}},
		{"help dri", []string{"drivers"}},
		{"help run ", nil},
		{"nosuchverb ", nil},
		{"--ver", []string{"--version"}},
		{"run --dri", []string{"--driver="}},
		{"run --driver ", drivers},
		{"run --driver n", driversFrom("", "n")},
		{"run --driver=n", driversFrom("--driver=", "n")},
		{"run --system.driver=n", driversFrom("--system.driver=", "n")},
		{"run --system.dr", []string{"--system.driver="}},
		{"run --system.driver chan --driv", nil},
		{"run --guarantee ", levels},
		{"run --settle b", []string{"batch"}},
		{"run --when-full ", []string{"wait", "drop", "fail"}},
		{"run --qu", []string{"--quiet"}},
		{"run --quiet --qu", nil},
		{"run --quiet=", nil},
		{"run --rate ", nil},
		{"run --nosuchflag ", nil},
		{"run --out ", []string{":folders"}},
		{"run --out=r", []string{":folders"}},
		{"run ", []string{":files yaml yml"}},
		{"run a.yaml ", nil},
		{"run -- ", []string{":files yaml yml"}},
		{"run -- --dri", []string{":files yaml yml"}},
		{"run --option stor", []string{"storage="}},
		{"run --option storage=", []string{"storage=file", "storage=memory"}},
		{"run --option=storage=m", []string{"--option=storage=memory"}},
		{"run --option ack-confirm=", []string{"ack-confirm=true", "ack-confirm=false"}},
		{"run --option ack-wait=", nil},
		{"run --driver nats --option conf", []string{"confirm=", "confirm-timeout="}},
		{"run --driver=nats --option stor", nil},
		{"run --driver nosuch --option ", nil},
		{"run --option storage=file --opt", []string{"--option="}},
		{"run --system.options.stor", []string{"--system.options.storage="}},
		{"run --system.options.storage=f", []string{"--system.options.storage=file"}},
		{"run --system.options.storage=file --dri", []string{"--driver="}},
		{"run core.yaml --option conf", []string{"confirm=", "confirm-timeout="}},
		{"run core.yaml --driver jetstream --option conf", nil},
		{"run odd.yaml --option stor", []string{"storage="}},
		{"run nosuch.yaml --option stor", []string{"storage="}},
		{"drivers r", driversFrom("", "r")},
		{"drivers ring ", nil},
		{"completion ", []string{"bash", "zsh", "fish"}},
		{"doctor --s", []string{"--strict"}},
		{"report ", []string{":folders"}},
		{"report a b ", []string{":folders"}},
		{"report --out ", []string{":files"}},
		{"report --format ", []string{"text", "markdown", "html", "benchstat", "csv", "junit", "omb", "openmetrics"}},
		{"version ", nil},
		{"broker ", []string{"install", "up", "status", "logs", "down"}},
		{"broker up nat", []string{"nats", "nats-streaming"}},
		{"broker up nats --set ", []string{"sync-always=", "sync-interval="}},
		{"broker up nats --set sync-a", []string{"sync-always="}},
		{"broker up nats --set sync-always=", []string{"sync-always=false", "sync-always=true"}},
		{"broker up nosuch --set ", nil},
		{"broker up nats --via ", []string{"process", "docker"}},
		{"broker up nats --nodes ", nil},
	} {
		t.Run(c.line, func(t *testing.T) {
			if diff := cmp.Diff(c.want, completed(t, World{Dir: dir}, strings.Split(c.line, " ")...)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if got := completed(t, World{}); !slices.Contains(got, "run") {
		t.Errorf("with no word at all: %v", got)
	}
}

func TestCompletionUsesDriverFromEnvironment(t *testing.T) {
	out := &watch{}
	code := Main(t.Context(), World{
		Args: []string{"internal", "complete", "run", "--option", "conf"}, Stdout: out, Stderr: io.Discard, Drivers: all.Definitions(),
		Env: func(name string) (string, bool) { return "nats", name == "WEIR_DRIVER" },
	})
	if code != 0 || !strings.HasPrefix(out.String(), "confirm=\t") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// Walks the whole grammar: a new verb, flag or argument must be completed, or declared free-form.
func TestEveryValueCompletesOrIsFreeForm(t *testing.T) {
	verbs := &commands{}
	verbs.Run.keys = commandline.NewKeys()
	verbs.Run.Keys = verbs.Run.keys.Plugin()
	parser := must.Get(kong.New(verbs, kong.Name("weir")))(t)
	known := func(v *kong.Value, where string) {
		if !commandline.Completes(v) {
			t.Errorf("%s: the value %s is in no row of valueKinds", where, v.Summary())
		}
	}
	keys := map[string]scenario.Key{}
	for _, k := range scenario.Keys() {
		keys[k.Path], keys[k.Short] = k, k
	}
	seen := 0
	must.Do(t, kong.Visit(parser.Model, func(v kong.Visitable, next kong.Next) error {
		node, ok := v.(*kong.Node)
		if !ok || node.Hidden {
			return next(nil)
		}
		verb := strings.TrimPrefix(node.FullPath(), "weir")
		got := completed(t, World{}, append(strings.Fields(verb), "--")...)
		for _, f := range node.Flags {
			seen++
			known(f.Value, verb+" --"+f.Name)
			if !f.Hidden && !slices.Contains(got, "--"+f.Name) && !slices.Contains(got, "--"+f.Name+"=") {
				t.Errorf("%s --%s is not completed", verb, f.Name)
			}
			if k := keys[f.Name]; f.PlaceHolder == "VALUE" && len(k.Words) > 0 && k.Path != "system.driver" {
				if diff := cmp.Diff(k.Words, completed(t, World{}, "run", "--"+f.Name, "")); diff != "" {
					t.Errorf("--%s (-key +completed)\n%s", f.Name, diff)
				}
			}
		}
		for _, p := range node.Positional {
			known(p, verb+" "+p.Name)
		}
		return next(nil)
	}))
	if seen < 40 {
		t.Errorf("saw %d flags: the walk is broken", seen)
	}
}

type shellCase struct {
	line string
	bash string // without what is before the last = or :
	fish string
	zsh  string
}

// shellCases are lines, each with what bash and fish offer for the last word,
// and what zsh makes of the line when Tab is hit. An empty text is not tried.
// It is no variable: each weir that a script starts would list the drivers.
func shellCases() []shellCase {
	return []shellCase{
		{"weir ru", "run", "run", "weir run "},
		{"weir run --driver je", "jetstream", "jetstream", "weir run --driver jetstream "},
		{"weir run --driver=ch", "chan", "--driver=chan", "weir run --driver=chan "},
		{"weir run --driver=", strings.Join(driversFrom("", ""), " "), strings.Join(driversFrom("--driver=", ""), " "), ""},
		{"weir run --option storage=m", "memory", "storage=memory", "weir run --option storage=memory "},
		{"weir run --option=storage=m", "memory", "--option=storage=memory", "weir run --option=storage=memory "},
		{"weir run --driver=nats --option confirm-", "confirm-timeout=", "confirm-timeout=", "weir run --driver=nats --option confirm-timeout="},
		{"weir run a", "a.yaml", "a.yaml", "weir run a.yaml "},
		{"weir run m", "my file.yml", "my file.yml", `weir run my\ file.yml `},
		{"weir run c", "", "", ""},
		{"weir run --out=re", "results", "--out=results/", "weir run --out=results/"},
		{"weir run --out re", "results", "results/", "weir run --out results/"},
		{"weir report --out=c", "c.txt", "--out=c.txt", "weir report --out=c.txt "},
		{"weir run --address 127.0.0.1:42", "", "", ""},
		{"weir drivers j", "jetstream", "jetstream", "weir drivers jetstream "},
		{"weir completion z", "zsh", "zsh", "weir completion zsh "},
	}
}

// shell returns a command of a shell with weir in its path and files in its folder. It skips a shell that
// this host lacks.
func shell(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		needs.Host(t, name, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.TempDir()
	for _, f := range []string{"a.yaml", "c.txt", "my file.yml"} {
		must.Do(t, os.WriteFile(filepath.Join(cmd.Dir, f), nil, 0o600))
	}
	must.Do(t, os.Mkdir(filepath.Join(cmd.Dir, "results"), 0o750))
	cmd.Env = append(os.Environ(), "PATH="+withWeir(t)+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+cmd.Dir, "LC_ALL=C.UTF-8")
	return cmd
}

// quotedWord writes a word for any of the shells.
func quotedWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// TestBashCompletes sources the script and calls its function as bash does.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	script.WriteString("source <(weir completion bash)\ncomplete -p weir\n")
	breaks := regexp.MustCompile(`[=:]|[^=: ]+`)
	for _, c := range shellCases() {
		words := breaks.FindAllString(c.line, -1)
		if strings.HasSuffix(c.line, " ") {
			words = append(words, "")
		}
		for i := range words {
			words[i] = quotedWord(words[i])
		}
		script.WriteString("COMP_LINE=" + quotedWord(c.line) + " COMP_POINT=${#COMP_LINE} COMP_WORDS=(" + strings.Join(words, " ") + ")\n")
		script.WriteString("COMP_POINT=${#COMP_LINE} COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_weir\n" + `echo "${COMPREPLY[*]}"` + "\n")
	}
	// In the middle of a line and of a word.
	script.WriteString("COMP_LINE='weir run --driX --json' COMP_POINT=14 COMP_WORDS=(weir run --driX --json) COMP_CWORD=2\n_weir\n" + `echo "${COMPREPLY[*]}"` + "\n")
	out, err := shell(t, "bash", "--norc", "--noprofile", "-c", script.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := []string{"complete -F _weir weir"}
	for _, c := range shellCases() {
		want = append(want, c.bash)
	}
	want = append(want, "--driver=")
	if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestFishCompletes asks fish what it would offer.
func TestFishCompletes(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	script.WriteString("weir completion fish | source\n")
	for _, c := range shellCases() {
		script.WriteString("echo (complete -C " + quotedWord(c.line) + " | string split -f 1 \\t | string join ' ')\n")
	}
	out, err := shell(t, "fish", "--no-config", "-c", script.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var want []string
	for _, c := range shellCases() {
		want = append(want, c.fish)
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestZshCompletes types into an interactive zsh, which zsh itself keeps on a
// terminal, hits Tab, and has it write what the line became.
func TestZshCompletes(t *testing.T) {
	t.Parallel()
	script := `zmodload zsh/zpty
await() { local i; for i in {1..3600}; do { [[ -e $1 ]] && (( $(wc -l <$1) >= $2 )) } && return; while zpty -r -t z x; do :; done; sleep 0.05; done; echo "nothing came"; exit 1; }
zpty -b z zsh -f -i
zpty -w -n z $'autoload -Uz compinit; compinit -D -i; source <(weir completion zsh); show() { print -r -- "$BUFFER" >>lines; BUFFER=; }; zle -N show; bindkey "^X" show; print ready >ready\r'
await ready 1
n=0
`
	var want []string
	for _, c := range shellCases() {
		if c.zsh != "" {
			want = append(want, c.zsh)
			script += "zpty -w -n z " + quotedWord(c.line) + "$'\\t\\x18'; await lines $((++n))\n"
		}
	}
	out, err := shell(t, "zsh", "-f", "-c", script+"zpty -d z\ncat lines\n").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
