package view

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

func TestText(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.json")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, in := range inputs {
		b := must.Get(os.ReadFile(in))(t)
		r, err := result.Unmarshal(b)
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		for suffix, write := range map[string]func(io.Writer) error{
			".txt":  func(w io.Writer) error { return Text(w, entry(r), Options{Dir: "results/x"}) },
			".ansi": func(w io.Writer) error { return Text(w, entry(r), Options{Dir: "results/x", Colour: true}) },
			".md":   func(w io.Writer) error { return Markdown(w, entry(r), Options{Dir: "results/x"}) },
		} {
			name := strings.TrimSuffix(filepath.Base(in), ".json") + suffix
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				same(t, name, write)
			})
		}
	}
}

func TestColourChangesNoText(t *testing.T) {
	t.Parallel()
	plain := must.Get(os.ReadFile("testdata/suspect.txt"))(t)
	coloured := must.Get(os.ReadFile("testdata/suspect.ansi"))(t)
	bare := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(string(coloured), "")
	if diff := cmp.Diff(string(plain), bare); diff != "" {
		t.Errorf("without its colours (-plain +coloured):\n%s", diff)
	}
}

func TestShortDrainReportsTimeNeeded(t *testing.T) {
	t.Parallel()
	for needs, want := range map[time.Duration]string{
		0:                       "use a longer one (--drain)",
		time.Millisecond:        "at this rate it needs 100 ms more",
		4123 * time.Millisecond: "at this rate it needs 4.10 s more: use a longer one (--drain)",
		99 * time.Second:        "at this rate it needs 1 min 39 s more",
	} {
		var b strings.Builder
		r := &result.Result{MessagesAll: result.Messages{Scheduled: 5, Delivered: 3, Pending: 2}, Host: result.Host{DrainNeedsNS: int64(needs)}}
		must.Do(t, Text(&b, entry(r), Options{}))
		if !strings.Contains(unwrapped(b.String()), "the drain ended while messages were pending; "+want) {
			t.Errorf("%v: want %q in\n%s", needs, want, b.String())
		}
	}
	var b strings.Builder
	if err := Text(&b, entry(&result.Result{MessagesAll: result.Messages{Scheduled: 5, Delivered: 5}}), Options{}); err != nil || strings.Contains(b.String(), "the drain ended") {
		t.Errorf("nothing was pending (%v):\n%s", err, b.String())
	}
}

func TestSessionNoteIsOneMarkdownSentence(t *testing.T) {
	t.Parallel()
	e := run(t, "nats-500")
	b := rendered(t, Markdown, entry(e.Result), Options{Session: 100})
	if got := b; !strings.Contains(got, "if slow messages do not come together; half of such sessions meet worse than") || strings.Contains(got, ";;") {
		t.Errorf("got\n%s", got)
	}
}

// What does not apply to a closed loop is not a gap in the checks.
func TestInapplicableChecksAreNotCalledUnchecked(t *testing.T) {
	t.Parallel()
	r := run(t, "chan-closed").Result
	r.Verdict.Checks = []result.Check{
		{Name: "lateness", Status: result.NotRun, Inapplicable: true, Why: "A closed loop has no schedule."},
		{Name: "steady state", Status: result.NotRun, Why: "It takes 10 seconds."},
	}
	var b strings.Builder
	must.Do(t, Text(&b, entry(r), Options{}))
	if got := b.String(); !strings.Contains(got, "not checked: steady state (it takes 10 seconds)\n") || strings.Contains(got, "lateness,") {
		t.Errorf("got\n%s", got)
	}
	b.Reset()
	must.Do(t, HTML(&b, entry(r), Options{}))
	mentions(t, b.String(), "does not apply", "not run")
}

func TestReportShowsMisroutedAndUnknown(t *testing.T) {
	t.Parallel()
	all := result.Messages{Scheduled: 5, Sent: 5, Confirmed: 5, Delivered: 1, Lost: 1, Unknown: 3, Misrouted: 2}
	b := rendered(t, Text, entry(&result.Result{Messages: all, MessagesAll: all}), Options{})
	mentions(t, unwrapped(b), "the system delivered 2 messages from another destination than the one that they were sent to", "misrouted 2", "unknown 3")
}
