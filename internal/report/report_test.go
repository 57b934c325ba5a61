package report

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weirmq/weir/result"
)

func TestText(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.json")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, in := range inputs {
		b, err := os.ReadFile(in)
		if err != nil {
			t.Fatal(err)
		}
		r, err := result.Unmarshal(b)
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		for suffix, write := range map[string]func(io.Writer) error{
			".txt":  func(w io.Writer) error { return Text(w, Entry{Result: r}, Options{Dir: "results/x"}) },
			".ansi": func(w io.Writer) error { return Text(w, Entry{Result: r}, Options{Dir: "results/x", Colour: true}) },
			".md":   func(w io.Writer) error { return Markdown(w, Entry{Result: r}, Options{Dir: "results/x"}) },
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
	plain, err := os.ReadFile("testdata/suspect.txt")
	if err != nil {
		t.Fatal(err)
	}
	coloured, err := os.ReadFile("testdata/suspect.ansi")
	if err != nil {
		t.Fatal(err)
	}
	bare := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(string(coloured), "")
	if diff := cmp.Diff(string(plain), bare); diff != "" {
		t.Errorf("without its colours (-plain +coloured):\n%s", diff)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for ns, want := range map[int64]string{
		0: "0 ns", 1: "1 ns", 999: "999 ns", 1000: "1.00 µs", 1234: "1.23 µs", 12_345: "12.3 µs", 123_456: "123 µs",
		999_499: "999 µs", 999_500: "1.00 ms", 9_996_000: "10.0 ms", 99_960_000: "100 ms", 1_500_000_000: "1.50 s",
		61_000_000_000: "61.0 s", 3_600_000_000_000: "60.0 min", -1500: "-1.50 µs",
	} {
		if got := Time(ns); got != want {
			t.Errorf("Time(%d) = %q; want %q", ns, got, want)
		}
	}
	for r, want := range map[float64]string{0: "0/s", 0.5: "0.500/s", 49.98: "50.0/s", 1000: "1,000/s", 5.2e6: "5,200,000/s"} {
		if got := Rate(r); got != want {
			t.Errorf("Rate(%v) = %q; want %q", r, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		500 * time.Second: "8 min 20 s", 10_000 * time.Second: "2 h 47 min", 12 * time.Second: "12 s", 250 * time.Millisecond: "250 ms",
		time.Minute: "1 min", 100 * time.Hour: "4 d 4 h", 5 * time.Second: "5 s",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%v) = %q; want %q", d, got, want)
		}
	}
	if got := Bytes(1_024_000); got != "1.02 MB/s" {
		t.Errorf("Bytes(1024000) = %q; want 1.02 MB/s", got)
	}
}

func TestADrainThatEndedTooEarlySaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	for needs, want := range map[time.Duration]string{
		0:                       "use a longer one (--drain)",
		time.Millisecond:        "at this rate it needs 100 ms more",
		4123 * time.Millisecond: "at this rate it needs 4.10 s more: use a longer one (--drain)",
		99 * time.Second:        "at this rate it needs 1 min 39 s more",
	} {
		var b strings.Builder
		r := &result.Result{MessagesAll: result.Messages{Scheduled: 5, Delivered: 3, Pending: 2}, Host: result.Host{DrainNeedsNS: int64(needs)}}
		if err := Text(&b, Entry{Result: r}, Options{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "the drain ended while messages were pending; "+want) {
			t.Errorf("%v: want %q in\n%s", needs, want, b.String())
		}
	}
	var b strings.Builder
	if err := Text(&b, Entry{Result: &result.Result{MessagesAll: result.Messages{Scheduled: 5, Delivered: 5}}}, Options{}); err != nil || strings.Contains(b.String(), "the drain ended") {
		t.Errorf("nothing was pending (%v):\n%s", err, b.String())
	}
}

func TestAnIntervalsEndIsReadInItsOwnUnitWhereItIsFarOff(t *testing.T) {
	for _, x := range []struct {
		end, value int64
		want       string
	}{
		{119_000, 187_000, "119"},
		{567_804_000, 187_000, "568 ms"},
		{0, 1_080_000_000, "0"},
		{250_000, 1_080_000_000, "250 µs"},
		{120_000_000, 1_080_000_000, "0.120"},
		{3_121_000, 916_000, "3,121"},
	} {
		if got := endOf(x.end, x.value); got != x.want {
			t.Errorf("%d ns beside %d ns is %q, want %q", x.end, x.value, got, x.want)
		}
	}
}

func TestTheNoteOnSessionsIsOneSentenceInMarkdown(t *testing.T) {
	t.Parallel()
	e := run(t, "nats-500")
	var b strings.Builder
	if err := Markdown(&b, Entry{Result: e.Result}, Options{Session: 100}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "if slow messages do not come together; half of such sessions meet worse than") || strings.Contains(got, ";;") {
		t.Errorf("got\n%s", got)
	}
}

// TestOnlyChecksThatCouldNotRunAreCalledNotChecked: what does not apply to a closed
// loop is not a gap in what was looked at.
func TestOnlyChecksThatCouldNotRunAreCalledNotChecked(t *testing.T) {
	t.Parallel()
	r := run(t, "chan-closed").Result
	r.Verdict.Checks = []result.Check{
		{Name: "lateness", Status: result.NotRun, Inapplicable: true, Why: "A closed loop has no schedule."},
		{Name: "steady state", Status: result.NotRun, Why: "It takes 10 seconds."},
	}
	var b strings.Builder
	if err := Text(&b, Entry{Result: r}, Options{}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "not checked: steady state (it takes 10 seconds)\n") || strings.Contains(got, "lateness,") {
		t.Errorf("got\n%s", got)
	}
	b.Reset()
	if err := HTML(&b, Entry{Result: r}, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"does not apply", "not run"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

func TestAReportSaysWhatWasMisroutedAndWhatIsUnknown(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	all := result.Messages{Scheduled: 5, Sent: 5, Confirmed: 5, Delivered: 1, Lost: 1, Unknown: 3, Misrouted: 2}
	if err := Text(&b, Entry{Result: &result.Result{Messages: all, MessagesAll: all}}, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the system delivered 2 messages from another destination than the one that they were sent to", "misrouted 2", "unknown 3"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in\n%s", want, b.String())
		}
	}
}
