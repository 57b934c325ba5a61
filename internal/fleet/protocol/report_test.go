package protocol

import (
	"bytes"
	"compress/gzip"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

// reported is a report of which every field is set.
func reported() *Report {
	r := &Report{Agent: "a", Seq: 7, At: -5, Ledger: []byte("ledger"), Events: []engine.Event{{At: 3, Kind: "k", Text: "é"}}}
	r.Interval = measure.Interval{From: 1, To: 2, Backlog: measure.Backlog{{Missing: 1, Passed: 2}}}
	r.Interval.Kinds[measure.Settle][measure.Measure].Add(1234, 5)
	r.Final = &Final{Part: &engine.WorkerResult{Stages: make([]measure.Stage, 2), Paused: &engine.Paused{}}, Late: []byte("late")}
	for _, c := range []*measure.Counts{&r.Final.Part.Stages[1].Kinds[0], &r.Final.Part.Paused.Old, &r.Final.Part.Paused.Live} {
		c.Add(9, 9)
	}
	r.Final.Extremes[0][0] = measure.Range{Min: 1, Max: 2, Any: true}
	return r
}

// encodedReport is a report as it travels.
func encodedReport(t testing.TB, r *Report) []byte {
	t.Helper()
	return must.Get(new(ReportEncoder).Encode(r))(t)
}

func TestReportsSurviveTravel(t *testing.T) {
	e := new(ReportEncoder)
	for _, r := range []*Report{reported(), {Agent: "b", Seq: 1}, reported()} {
		b := must.Get(e.Encode(r))(t)
		got := must.Get(new(ReportDecoder).Decode(b))(t)
		if want, got := string(Encode(r)), string(Encode(got)); want != got {
			t.Errorf("-sent +arrived: %s", cmp.Diff(want, got))
		}
	}
	if _, err := e.Encode(&Report{Agent: "a", Seq: 1, Ledger: make([]byte, MaxReport)}); err == nil {
		t.Error("a report beyond the bound is sent")
	}
}

func TestNoReportsAreRefused(t *testing.T) {
	zipped := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		return b.Bytes()
	}
	good := encodedReport(t, reported())
	spoilt := slices.Clone(good)
	spoilt[len(spoilt)-5] ^= 1
	for name, b := range map[string][]byte{
		"nothing": nil, "garbage": []byte("garbage"), "half of one": good[:len(good)/2], "another checksum": spoilt,
		"a bomb": zipped(strings.Repeat(" ", MaxReport+1)), "no JSON": zipped("{"), "an unknown field": zipped(`{"agent":"a","seq":1,"x":1}`),
		"two": zipped(`{"agent":"a","seq":1}{}`), "no agent": zipped(`{"seq":1}`), "no number": zipped(`{"agent":"a"}`),
		"no counts":       zipped(`{"agent":"a","seq":1,"interval":{"Kinds":[["/////w=="]]}}`),
		"no part":         zipped(`{"agent":"a","seq":1,"final":{}}`),
		"too many events": encodedReport(t, &Report{Agent: "a", Seq: 1, Events: make([]engine.Event, MaxEvents+2)}),
		"a long event":    encodedReport(t, &Report{Agent: "a", Seq: 1, Events: []engine.Event{{Text: strings.Repeat("x", maxText+1)}}}),
		"too many stages": encodedReport(t, &Report{Agent: "a", Seq: 1, Final: &Final{Part: &engine.WorkerResult{Stages: make([]measure.Stage, measure.MostStages+1)}}}),
	} {
		if _, err := new(ReportDecoder).Decode(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLongEventsAreCut(t *testing.T) {
	e := ShortEvent(engine.Event{At: 1, Kind: strings.Repeat("é", 200), Text: strings.Repeat("€", 3000)})
	if len(e.Kind) != maxKind || len(e.Text) > maxText || len(e.Text) < maxText-3 || !strings.HasSuffix(e.Text, "€ ... (9000 bytes in all)") {
		t.Errorf("%d and %d bytes, %s", len(e.Kind), len(e.Text), e.Text[len(e.Text)-40:])
	}
	if e := (engine.Event{Kind: "k", Text: "t"}); ShortEvent(e) != e {
		t.Errorf("%+v", ShortEvent(e))
	}
}

func TestPiecesMakeReports(t *testing.T) {
	var a Assembler
	add := func(piece []byte, want string, refused bool) {
		t.Helper()
		whole, err := a.Add(piece)
		if string(whole) != want || errors.Is(err, ErrMalformed) != refused {
			t.Errorf("%q, %v; want %q", whole, err, want)
		}
	}
	one, two := Split(1, []byte("0123456789"), pieceHead+4), Split(2, []byte("abcdef"), pieceHead+4)
	if len(one) != 3 || len(two) != 2 {
		t.Fatalf("%d and %d pieces", len(one), len(two))
	}
	add(one[1], "", true) // its first is missing
	add(one[0], "", false)
	add(one[0], "", false) // again
	add(one[1], "", false)
	add(one[1], "", false)
	add(two[1], "", true)
	add(one[2], "0123456789", false)
	add(one[2], "", false)
	add(two[0], "", false)
	add(one[1], "", true)
	add(two[1], "abcdef", false)
	add(nil, "", true)
	add(two[0][:pieceHead], "", true)
	add(Split(3, make([]byte, MaxReport), 2*MaxReport)[0], "", true)
}

func FuzzReports(f *testing.F) {
	f.Add(encodedReport(f, reported()))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := new(ReportDecoder).Decode(b); err != nil && !errors.Is(err, ErrMalformed) {
			t.Error(err)
		}
		var a Assembler
		if whole, err := a.Add(b); err != nil && (whole != nil || !errors.Is(err, ErrMalformed)) {
			t.Error(err)
		}
	})
}
