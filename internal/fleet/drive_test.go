package fleet

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
)

// A report counts once, however often it arrives; a missing one is reported, as is an invalid one; nothing
// counts after the last.
func TestAReportCountsOnce(t *testing.T) {
	t.Parallel()
	log := &fleettest.Diary{}
	r := benchRun(t, benchAgents)
	var texts []string
	r.Config.OnEvent = func(e engine.Event) { texts = append(texts, e.Text) }
	confirmed := uint64(0)
	r.Config.OnInterval = func(iv *measure.Interval) { confirmed += iv.Counters[measure.Measure].Confirmed }
	d := benchDrive(t, &Fleet{limited: hub.NewLimitedLog(log.Log()), session: "s", clock: pace.NewClock()}, r, benchAgents)
	d.begunFor(t)
	for i := range benchAgents {
		if i != 3 { // so that nobody else's seconds are waited for
			d.c.End(i, nil, errors.New("it died"))
		}
	}
	send := func(seq uint64, final *protocol.Final) {
		t.Helper()
		x := &protocol.Report{Agent: agentOf(3), Seq: seq, At: int64(seq) * 1e9, Final: final}
		if final == nil {
			x.Interval = *fleettest.MeasuredIn(int(seq))
		}
		whole := must.Get(new(protocol.ReportEncoder).Encode(x))(t)
		for _, p := range protocol.Split(seq, whole, 100) {
			d.report(&letter{subject: protocol.ReportSubject("s", "bench", agentOf(3)), data: p})
		}
	}
	send(1, nil)
	send(2, nil)
	send(1, nil)
	if got := confirmed; got != 3 {
		t.Errorf("%d confirmed after the first two, want 1 + 2", got)
	}
	// A coordinator that reads the stream again knows its pieces and its reports.
	d.posts[3].pieces = protocol.Assembler{}
	send(2, nil)
	if got := confirmed; got != 3 {
		t.Errorf("%d confirmed after the second came again, want 3", got)
	}
	send(5, nil)
	if got := confirmed; got != 8 || len(texts) != 1 || !strings.Contains(texts[0], "2 reports are missing") {
		t.Errorf("%d confirmed, told of %q; want 8, and of 2 that are missing", got, texts)
	}
	for _, final := range []*protocol.Final{{}, {Part: &engine.WorkerResult{NotSent: []engine.Group{{Phase: 7}}}}, {Part: &engine.WorkerResult{}, Late: []byte("late")}} {
		n := len(texts)
		send(d.posts[3].seq+1, final)
		if d.posts[3].done || d.c.Ended(false) || len(texts) != n+1 || !strings.Contains(texts[n], "was refused") {
			t.Errorf("a last report with %+v: done %v, told of %q", final, d.posts[3].done, texts[n:])
		}
	}
	send(d.posts[3].seq+1, &protocol.Final{Part: &engine.WorkerResult{FirstNS: 5}})
	if !d.posts[3].done || !d.c.Ended(false) || d.finals[3] == nil || d.finals[3].Part.FirstNS != 5 {
		t.Errorf("the last report was not taken: %+v", d.finals[3])
	}
	send(d.posts[3].seq+1, nil)
	if got := confirmed; got != 8 {
		t.Errorf("%d confirmed after the end, want 8", got)
	}
	// The log and the events are bounded.
	texts = nil
	for range 1000 {
		d.report(&letter{subject: protocol.ReportSubject("s", "bench", "stranger"), data: []byte("x")})
		d.report(&letter{subject: protocol.ReportSubject("s", "bench", agentOf(4)), data: []byte("x")})
	}
	for _, peer := range []string{"stranger", agentOf(4)} {
		if n := strings.Count(log.String(), `"a report was refused" from=`+peer); n != hub.LogEachMost {
			t.Errorf("%d lines about what was refused of %s, want %d", n, peer, hub.LogEachMost)
		}
	}
	if len(texts) != mostRefused {
		t.Errorf("%d events about what was refused, want %d", len(texts), mostRefused)
	}
	d.f.limited.End()
	log.Has(t, "more lines like this were left out", "from=stranger", "lines=990")
}

// What is not a ledger of this run is refused.
func TestForeignLedgersAreRefused(t *testing.T) {
	r := benchRun(t, benchAgents)
	d := benchDrive(t, &Fleet{session: "s", clock: pace.NewClock()}, r, benchAgents)
	encoded := func(streams int, consumers ...int) []byte {
		var p ledger.Part
		ledger.New(ledger.Config{Streams: streams, Consumers: consumers}).Part(&p)
		return must.Get(p.AppendBinary(nil))(t)
	}
	good := encoded(benchAgents, 1)
	must.Do(t, d.readLedger(good, &d.ledger))
	for what, b := range map[string][]byte{
		"fewer streams": encoded(benchAgents-1, 1), "more": encoded(benchAgents+1, 1), "no subscription": encoded(benchAgents), "two": encoded(benchAgents, 1, 1),
		"half of it": good[:len(good)/2], "nothing": {}, "garbage": []byte("garbage"),
	} {
		if err := d.readLedger(b, &d.ledger); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}
