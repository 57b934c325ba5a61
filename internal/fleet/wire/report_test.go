package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirmq/weir/measure"
)

// full is a report of which every field is set, with n values in each of twelve
// distributions, log-normal about 1 ms: 99 % lie between 0.2 and 5 ms.
func full(n int) *Report {
	r := &Report{
		Agent: "agent-1", Seq: 7, Last: true, At: 123_456_789_012,
		Ledger: []byte("ledger"), Status: []byte(`{"cpu":0.5}`), Final: []byte(`{"ok":true}`),
		Events: []Event{{At: -5, Kind: "disconnected", Text: "connection reset"}, {At: 1 << 40, Kind: "k", Text: ""}},
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	r.Interval.From, r.Interval.To, r.Interval.Backlog = 1e9, 2e9, measure.Backlog{{Missing: 12, Passed: 3}}
	var s measure.Snapshot
	for i := range 12 {
		c := &r.Interval.Kinds[i%int(measure.NumKinds)][i/int(measure.NumKinds)]
		for range n {
			c.Add(int64(1e6*math.Exp(0.6*rnd.NormFloat64())), 1)
		}
	}
	r.Interval.Counters[measure.Measure].Sent, r.Interval.Window.Received = uint64(n), uint64(n)
	s.Add(&r.Interval)
	r.Extremes = s.Extremes()
	return r
}

func encoded(t testing.TB, r *Report) []byte {
	t.Helper()
	b, err := r.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sameReport(t testing.TB, got, want *Report) {
	t.Helper()
	a, err := got.Interval.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := want.Interval.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("the intervals differ:\n%x\n%x", a, b)
	}
	slices := func(r *Report) [3][]byte { return [3][]byte{r.Ledger, r.Status, r.Final} }
	for i, b := range slices(want) {
		if a := slices(got)[i]; !bytes.Equal(a, b) {
			t.Errorf("slice %d: %d bytes that differ from %d", i, len(a), len(b))
		}
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Report{}, "Interval", "Ledger", "Status", "Final"), cmpopts.IgnoreUnexported(Report{}), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

func TestReportsSurviveTheWire(t *testing.T) {
	var into Report // reused, so that what is left of the last shows
	for _, r := range []*Report{full(1000), {Agent: "a", Seq: 1}, full(1), {Agent: "é", Seq: math.MaxUint64, At: math.MinInt64, Ledger: make([]byte, 5<<20)}, full(0)} {
		b, err := r.Append([]byte("before"))
		if err != nil || string(b[:6]) != "before" {
			t.Fatalf("%.6q: %v", b, err)
		}
		b = b[6:]
		if again := encoded(t, r); !bytes.Equal(again, b) {
			t.Error("the same report is written in two ways")
		}
		if err := Decode(b, &into); err != nil {
			t.Fatal(err)
		}
		clear(b) // it is not kept
		sameReport(t, &into, r)
	}
}

// TestWhatDoesNotDeflateTravelsPlain sends random bytes, of which a deflated
// form has more.
func TestWhatDoesNotDeflateTravelsPlain(t *testing.T) {
	r := &Report{Agent: "a", Seq: 1, Ledger: make([]byte, 100_000)}
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range r.Ledger {
		r.Ledger[i] = byte(rnd.Uint32())
	}
	b := encoded(t, r)
	if most := headLen + crcLen + len(r.Ledger) + 200; b[headLen-5] != bodyPlain || len(b) > most {
		t.Errorf("%d bytes in way %d", len(b), b[headLen-5])
	}
	var into Report
	if err := Decode(b, &into); err != nil {
		t.Fatal(err)
	}
	sameReport(t, &into, r)
	r.Ledger = make([]byte, 100_000)
	if b := encoded(t, r); b[headLen-5] != bodyDeflated || len(b) > 2000 {
		t.Errorf("%d bytes in way %d", len(b), b[headLen-5])
	}
}

func TestEventsAreCutAndSaySo(t *testing.T) {
	text := strings.Repeat("€", 3000)
	r := &Report{Agent: "a", Seq: 1, Events: []Event{{Kind: strings.Repeat("k", 300), Text: text}, {Text: strings.Repeat("\x80", 5000)}, {Text: text[:MaxText-1] + "x"}}}
	for i := len(r.Events); i < 1205; i++ {
		r.Events = append(r.Events, Event{At: int64(i), Kind: "k", Text: fmt.Sprint(i)})
	}
	var into Report
	if err := Decode(encoded(t, r), &into); err != nil {
		t.Fatal(err)
	}
	if len(r.Events) != 1205 || r.Events[0].Text != text {
		t.Error("the report itself was cut")
	}
	if n := len(into.Events); n != MaxEvents {
		t.Fatalf("%d events", n)
	}
	first, second, third, last := into.Events[0], into.Events[1], into.Events[2], into.Events[MaxEvents-1]
	if len(first.Kind) != MaxName || len(first.Text) > MaxText || len(first.Text) < MaxText-50 || !strings.HasSuffix(first.Text, "€ ... (9000 bytes in all)") {
		t.Errorf("%d bytes of kind, %d of text, ending %q", len(first.Kind), len(first.Text), first.Text[len(first.Text)-30:])
	}
	if !strings.HasSuffix(second.Text, "\x80 ... (5000 bytes in all)") || third.Text != r.Events[2].Text {
		t.Errorf("%d and %d bytes of text", len(second.Text), len(third.Text))
	}
	if want := (Event{At: 998, Kind: "events-cut", Text: "206 more events of this report were left out"}); last != want || into.Events[MaxEvents-2].Text != "998" {
		t.Errorf("the last is %v, want %v", last, want)
	}
	r.Events = r.Events[:MaxEvents]
	if err := Decode(encoded(t, r), &into); err != nil || into.Events[MaxEvents-1].Text != "999" {
		t.Errorf("of %d events the last is %v: %v", MaxEvents, into.Events[MaxEvents-1], err)
	}
}

func TestReportsThatAreNoneAreNotWritten(t *testing.T) {
	big := make([]byte, MaxReport/2)
	counts := func() *Report {
		r := full(0)
		r.Interval.Kinds[0][0].Add(1, 1<<63)
		return r
	}
	for name, tt := range map[string]struct {
		r    *Report
		want error
	}{
		"no agent":          {&Report{Seq: 1}, nil},
		"too long a name":   {&Report{Agent: strings.Repeat("a", MaxName+1), Seq: 1}, nil},
		"no number":         {&Report{Agent: "a"}, nil},
		"counts of 64 bits": {counts(), nil},
		"a large ledger":    {&Report{Agent: "a", Seq: 1, Ledger: make([]byte, MaxReport+1)}, ErrTooLarge},
		"all together":      {&Report{Agent: "a", Seq: 1, Ledger: big, Status: big}, ErrTooLarge},
	} {
		if b, err := tt.r.Append([]byte("abc")); err == nil || string(b) != "abc" || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}

// seal makes a report of a body, written in way how and said to have size
// bytes.
func seal(how byte, size int, body []byte) []byte {
	b := append([]byte(magic), version, how)
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	b = append(b, body...)
	return binary.BigEndian.AppendUint32(b, checksum(b))
}

func TestMalformedReportsAreRefused(t *testing.T) {
	r := full(20)
	good := encoded(t, r)
	plain := slices.Clone(r.coder.plain)
	deflated := good[headLen : len(good)-crcLen]
	var into Report
	if err := Decode(seal(bodyPlain, len(plain), plain), &into); err != nil {
		t.Fatal(err)
	}
	sameReport(t, &into, r)
	other := slices.Clone(good)
	other[len(magic)]++
	for name, tt := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":                  {nil, ErrFormat},
		"another magic":            {append([]byte("xyz"), good[3:]...), ErrFormat},
		"another version":          {other, ErrVersion},
		"a head only":              {good[:headLen+crcLen-1], ErrFormat},
		"more than any":            {append(good[:len(good):len(good)], make([]byte, maxFrame)...), ErrTooLarge},
		"bytes after it":           {append(good[:len(good):len(good)], 0), ErrFormat},
		"a body of 4 GiB":          {seal(bodyDeflated, math.MaxUint32, deflated), ErrTooLarge},
		"a body of too much":       {seal(bodyDeflated, MaxReport+1, deflated), ErrTooLarge},
		"more than deflate makes":  {seal(bodyDeflated, maxInflated*len(deflated)+1, deflated), ErrFormat},
		"a body longer than said":  {seal(bodyDeflated, len(plain)-1, deflated), ErrFormat},
		"a body shorter than said": {seal(bodyDeflated, len(plain)+1, deflated), ErrFormat},
		"after the deflated":       {seal(bodyDeflated, len(plain), append(deflated[:len(deflated):len(deflated)], 0)), ErrFormat},
		"not deflated":             {seal(bodyDeflated, len(plain), plain), ErrFormat},
		"another way":              {seal(2, len(plain), plain), ErrFormat},
		"plain of another length":  {seal(bodyPlain, len(plain)+1, plain), ErrFormat},
		"bytes after the body":     {seal(bodyPlain, len(plain)+1, append(plain[:len(plain):len(plain)], 0)), ErrFormat},
	} {
		if err := Decode(tt.b, &into); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range plain {
		if err := Decode(seal(bodyPlain, n, plain[:n]), &into); !errors.Is(err, ErrFormat) {
			t.Fatalf("a body cut after %d of %d bytes: %v", n, len(plain), err)
		}
	}
	for i := range good {
		b := slices.Clone(good)
		b[i] ^= 1 << (i % 8)
		if err := Decode(b, &into); !errors.Is(err, ErrFormat) && !errors.Is(err, ErrVersion) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
	if err := Decode(good, &into); err != nil {
		t.Fatalf("a sound one after all those: %v", err)
	}
	sameReport(t, &into, r)
}

func TestMalformedBodiesAreRefused(t *testing.T) {
	var head []byte
	head = appendBytes(head, "a")
	r := &Report{Agent: "a", Seq: 1}
	_ = encoded(t, r)
	tail := r.coder.plain[len(head):] // from the number on
	events := len(r.coder.plain) - 2  // before the final's length
	replaced := func(at int, with ...byte) []byte {
		return slices.Concat(r.coder.plain[:at], with, r.coder.plain[at+1:])
	}
	for name, b := range map[string][]byte{
		"no agent":         append([]byte{0}, tail...),
		"a name too long":  slices.Concat(binary.AppendUvarint(nil, MaxName+1), make([]byte, MaxName+1), tail),
		"number 0":         replaced(len(head), 0),
		"an overlong 1":    replaced(len(head), 0x81, 0),
		"last is 2":        replaced(len(head)+1, 2),
		"too many events":  replaced(events, binary.AppendUvarint(nil, MaxEvents+1)...),
		"events are short": replaced(events, 2),
		"a kind too long":  replaced(events, slices.Concat([]byte{1, 0}, appendBytes(nil, make([]byte, MaxName+1)), []byte{0})...),
		"a text too long":  replaced(events, slices.Concat([]byte{1, 0, 0}, appendBytes(nil, make([]byte, MaxText+1)))...),
	} {
		var into Report
		if err := Decode(seal(bodyPlain, len(b), b), &into); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := replaced(events, slices.Concat([]byte{1, 0, 0}, appendBytes(nil, make([]byte, MaxText)))...)
	if err := Decode(seal(bodyPlain, len(b), b), new(Report)); err != nil {
		t.Errorf("a sound one: %v", err)
	}
}

func TestReportsReuseMemory(t *testing.T) {
	r, into := full(1000), new(Report)
	r.Events = nil // their texts are new ones
	b := encoded(t, r)
	if n := testing.AllocsPerRun(20, func() { b, _ = r.Append(b[:0]) }); n != 0 {
		t.Errorf("%g allocations to encode", n)
	}
	if n := testing.AllocsPerRun(20, func() {
		if err := Decode(b, into); err != nil {
			t.Fatal(err)
		}
	}); n > 100 { // the agent's name, and small tables of each deflated block
		t.Errorf("%g allocations to decode", n)
	}
}

func FuzzDecode(f *testing.F) {
	r := full(20)
	f.Add(encoded(f, r))
	f.Add(slices.Clone(r.coder.plain))
	f.Add(encoded(f, &Report{Agent: "a", Seq: 1}))
	var into, again Report
	check := func(t *testing.T, b []byte) {
		if err := Decode(b, &into); err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		if cap(into.coder.plain) > MaxReport {
			t.Fatalf("%d bytes taken", cap(into.coder.plain))
		}
		if err := Decode(encoded(t, &into), &again); err != nil {
			t.Fatal(err)
		}
		sameReport(t, &again, &into)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, b)
		// The checksum keeps almost everything out: so also what is behind it.
		check(t, seal(bodyPlain, len(b), b))
		check(t, seal(bodyDeflated, 100, b))
	})
}

func BenchmarkReport(b *testing.B) {
	for _, n := range []int{0, 1000, 20_000} {
		r, into := full(n), new(Report)
		name := fmt.Sprintf("values=%d", 12*n)
		buf := encoded(b, r)
		b.Run("encode/"+name, func(b *testing.B) {
			for b.Loop() {
				buf, _ = r.Append(buf[:0])
			}
			b.ReportMetric(float64(len(buf)), "bytes")
			b.ReportMetric(float64(len(r.coder.plain)), "plain-bytes")
		})
		b.Run("decode/"+name, func(b *testing.B) {
			for b.Loop() {
				if err := Decode(buf, into); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
