package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRepeatedEventsAreReportedLessOften(t *testing.T) {
	t.Parallel()
	var r repeatedEvents
	var got []string
	for s := range int64(100) { // each second for 100 s
		if line := r.tell(s*second+1, "fault", fmt.Sprintf("consumer %d: gone", s)); line != "" {
			got = append(got, line)
		}
	}
	got = append(got, r.rest()...)
	want := []string{
		"at 0.0 s: receiving: consumer 0: gone",
		"at 10.0 s: receiving: consumer 10: gone (the last of 10 since such a line)",
		"at 30.0 s: receiving: consumer 30: gone (the last of 20 since such a line)",
		"at 1 min 10 s: receiving: consumer 70: gone (the last of 40 since such a line)",
		"29 more by the end of the run, the last: receiving: consumer 99: gone",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if again := r.rest(); len(again) > 0 {
		t.Errorf("told twice: %v", again)
	}
}

// As in the report.
func TestTimesCountFromWarmUpEnd(t *testing.T) {
	t.Parallel()
	for at, want := range map[int64]string{
		-1:              "fault: kill server-1",
		second / 2:      "at -1.5 s: fault: kill server-1",
		2 * second:      "at 0.0 s: fault: kill server-1",
		4 * second:      "at 2.0 s: fault: kill server-1",
		62*second + 1e8: "at 1 min: fault: kill server-1",
	} {
		r := repeatedEvents{from: 2 * second}
		if got := r.tell(at, "injected", "kill server-1"); got != want {
			t.Errorf("at %d: %q; want %q", at, got, want)
		}
	}
}

func TestManyKindsOfEventsAreBounded(t *testing.T) {
	t.Parallel()
	var r repeatedEvents
	shown := 0
	for i := range 1000 {
		if r.tell(1, "error", strings.Repeat("x", i)) != "" {
			shown++
		}
	}
	if shown != mostEventKinds+1 || len(r.of) != mostEventKinds+1 {
		t.Errorf("told %d, remembered %d; want %d of both", shown, len(r.of), mostEventKinds+1)
	}
	if rest := r.rest(); len(rest) != 1 || !strings.HasPrefix(rest[0], fmt.Sprintf("%d more by the end of the run, the last: a message failed: ", 1000-mostEventKinds-1)) {
		t.Errorf("the rest is %q", rest)
	}
}

func TestAnEventInWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name             string
		at               int64
		kind, text, want string
	}{
		{"before the run has begun", 0, "reconnect", "control", "connected again: control"},
		{"of a kind that nobody put into words", second, "leader-changed", "b", "at 1.0 s: leader changed: b"},
		{"without a text", second, "gone", "", "at 1.0 s: the system is gone"},
		{"a text with control characters", second, "error", "a\x1b]0;x\x07\u202eb\r\nc", "at 1.0 s: a message failed: a]0;xb c"},
		{"a stop that nobody feels", second, "gc", "2 cycles, longest stop 80µs", ""},
		{"a stop that is felt", second, "gc", "2 cycles, longest stop 1.5ms", "at 1.0 s: weir's own garbage collector: stops of up to 1.50 ms (2 cycles)"},
		{"a stop that nobody feels, of one of two processes", second, "gc", "consumers: 1 cycles, longest stop 3.584µs", ""},
		{"a stop that is felt, of one of two processes", second, "gc", "producers: 1 cycles, longest stop 2.62144ms", "at 1.0 s: weir's own garbage collector: producers: stops of up to 2.62 ms (1 cycle)"},
		{"a stop in other words", second, "gc", "a while", "at 1.0 s: weir's own garbage collector: a while"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r repeatedEvents
			if got := r.tell(tt.at, tt.kind, tt.text); got != tt.want {
				t.Errorf("got %q; want %q", got, tt.want)
			}
		})
	}
}
