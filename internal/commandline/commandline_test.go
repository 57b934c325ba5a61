package commandline

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/scenario"
)

// commands are a few, as package cli has more of.
type commands struct {
	Run struct {
		Keys   kong.Plugins `embed:""`
		Flags  *Keys        `kong:"-"`
		File   string       `arg:"" optional:"" help:"Scenario file."`
		Option []string     `sep:"none" placeholder:"NAME=VALUE" help:"An option."`
		Out    *string      `short:"o" help:"Where to."`
	} `cmd:"" help:"Measure."`
	Report struct {
		Dirs []string `arg:"" name:"dir" help:"Result folder."`
	} `cmd:"" help:"Show."`
	Fleet struct {
		Status struct{} `cmd:"" help:"The agents."`
		Doctor struct{} `cmd:"" help:"What is wrong."`
	} `cmd:"" help:"Several hosts."`
}

// read reads a line of words with blanks between them.
func read(t *testing.T, line string, columns int) (*Reading, *commands, string) {
	t.Helper()
	var out strings.Builder
	c := &commands{}
	c.Run.Flags = NewKeys()
	c.Run.Keys = c.Run.Flags.Plugin()
	g := must.Get(New(c, Environment{Stdout: &out, Stderr: &out, Columns: columns}))(t)
	r := must.Get(g.Read(strings.Fields(line)))(t)
	return r, c, out.String()
}

func TestParseReportsAllErrors(t *testing.T) {
	for line, want := range map[string][]string{
		"run -t2 -c100 x --qps 5 --foo": {
			"unknown flag -t, did you mean --measure or --producers?", "unknown flag -c, did you mean --producers or --consumers?",
			"unknown flag --qps, did you mean --rate?", "unknown flag --foo", "weir run --help=all lists its flags",
		},
		"run -rate 5":           {"unknown flag -rate, did you mean --rate?", "weir run --help=all lists its flags"},
		"run -o a -o b":         {"--out: is given twice (once)", "weir run --help=all lists its flags"},
		"run --option --rate 5": {"--option: has no value before the next flag (--option=VALUE)", "weir run --help=all lists its flags"},
		"run --rate":            {"--rate: has no value (--rate=VALUE)", "weir run --help=all lists its flags"},
		"report":                {"report: <dir> ... is missing (result folder)", "weir report --help lists its flags"},
		"report --csv":          {"unknown flag --csv, did you mean --format csv?", "weir report --help lists its flags"},
		"bench":                 {`unknown command "bench"; did you mean "run"? (run, report, fleet)`, "weir --help lists the commands"},
		"reprot x":              {`unknown command "reprot"; did you mean "report"? (run, report, fleet)`, "weir --help lists the commands"},
		"fleet ls":              {`unknown command "fleet ls"; did you mean "fleet status"? (status, doctor)`, "weir fleet --help lists its commands"},
		"fleet":                 {"which command? (status, doctor)", "weir fleet --help lists its commands"},
		"run --messages -5 -q":  {"unknown flag -q, did you mean --rate or --quiet?", "weir run --help=all lists its flags"},
	} {
		r, _, _ := read(t, line, 0)
		var got []string
		for _, f := range r.Faults {
			got = append(got, f.Error())
		}
		golden.Equal(t, want, append(got, r.Hint), "weir %s", line)
	}
}

// TestKeysAreFlags in both of their spellings, and options of drivers in both of theirs.
func TestKeysAreFlags(t *testing.T) {
	r, c, _ := read(t, "run --load.rate 5 --producers=2 --messages -1 --system.options.a b --system.options.c=d", 0)
	if len(r.Faults) > 0 || r.Verb == nil || r.Verb.Name != "run" {
		t.Fatalf("%+v", r)
	}
	c.Run.Flags.Args = r.Args
	want := []scenario.Override{
		{Flag: "--producers", Path: "topology.producers", Value: "2"},
		{Flag: "--load.rate", Path: "load.rate", Value: "5"},
		{Flag: "--messages", Path: "messages", Value: "-1"},
	}
	if diff := cmp.Diff(want, c.Run.Flags.Overrides()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got, err := Options(c.Run.Option, []string{"h:1", "h:2"})
	want = []scenario.Override{
		{Flag: "--option a", Path: "system.options.a", Value: "b"},
		{Flag: "--option c", Path: "system.options.c", Value: "d"},
		{Flag: "--address", Path: "system.options.address", Value: "h:1,h:2"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if _, err := Options([]string{"secret"}, nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an option without a value: %v", err)
	}
}

func TestHelpFitsASmallTerminal(t *testing.T) {
	for _, line := range []string{"", "help", "help run", "fleet --help"} {
		r, _, text := read(t, line, 40)
		if !r.Helped || !strings.HasPrefix(text, "Usage: weir ") {
			t.Errorf("weir %s: %+v\n%s", line, r, text)
		}
		for l := range strings.Lines(text) {
			if len([]rune(strings.TrimRight(l, "\n"))) > 40 {
				t.Errorf("weir %s: too wide: %s", line, l)
			}
		}
	}
}
