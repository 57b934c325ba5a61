package agent

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

// An office is a hub with a stream of reports, which can be away for a while.
type office struct {
	*hub.Hub
	keep        *admission.Keep
	dir, listen string
	reports     interface{ Close() }
	js          jetstream.JetStream
}

func openOffice(t *testing.T) *office {
	t.Helper()
	o := &office{keep: fleettest.Keep(t), dir: t.TempDir(), listen: "127.0.0.1:0"}
	o.open(t)
	o.listen = o.Addr()
	must.Get(o.js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "reports", Subjects: []string{hub.Reports + ">"}, Duplicates: time.Minute,
	}))(t)
	t.Cleanup(func() { o.away() })
	return o
}

func (o *office) open(t *testing.T) {
	t.Helper()
	o.Hub = must.Get(hub.Start(t.Context(), hub.Options{Keep: o.keep, Dir: o.dir, Listen: o.listen}))(t)
	reports := must.Get(o.DialReports(t.Context(), "books", nil))(t)
	o.js, o.reports = must.Get(jetstream.New(reports))(t), reports
}

// away ends the server; what it keeps stays.
func (o *office) away() {
	o.reports.Close()
	o.Close()
}

// read returns the reports that are in the stream, and how many messages it took.
func (o *office) read(t *testing.T) (all []*protocol.Report, messages int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := must.Get(o.js.Stream(ctx, "reports"))(t)
	var pieces protocol.Assembler
	info := must.Get(s.Info(ctx))(t)
	for seq := max(1, info.State.FirstSeq); seq <= info.State.LastSeq; seq++ {
		m := must.Get(s.GetMsg(ctx, seq))(t)
		messages++
		whole := must.Get(pieces.Add(m.Data))(t)
		if whole == nil {
			continue
		}
		r := must.Get(new(protocol.ReportDecoder).Decode(whole))(t)
		all = append(all, r)
	}
	return all, messages
}

// posting is a post that runs until the test ends.
func (o *office) posting(t *testing.T) *post {
	t.Helper()
	nc, id := dial(t, o.keep.Own(o.JoinURL("", admission.Token{})))
	p := must.Get(newPost(nc, protocol.ReportSubject("s", "run", id), "a", "run.instance", slog.New(slog.DiscardHandler)))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { p.run(ctx); close(ended) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		nc.Close()
	})
	return p
}

// During an outage reports wait, a bounded number, and are merged: afterwards all measurements arrive, in
// reports without a gap, the last one at the end.
func TestMeasurementsSurviveServerOutage(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	p := o.posting(t)
	const before, away = 3, 3 * postPending
	var want measure.Snapshot
	tell := func(n int) {
		iv := fleettest.MeasuredIn(n)
		want.Add(iv)
		p.interval(iv)
		*iv = measure.Interval{From: 7, To: 7}                              // it is the caller's again
		p.event(engine.Event{At: int64(n), Kind: "k", Text: fmt.Sprint(n)}) // goes with the next
	}
	for n := 1; n <= before; n++ {
		tell(n)
	}
	must.Until(t, "the first reports to be taken", func() bool {
		all, _ := o.read(t)
		return len(all) > 0 && all[len(all)-1].Interval.To == before*1e9
	})
	o.away()
	for n := before + 1; n <= before+away; n++ {
		tell(n)
		p.mu.Lock()
		if len(p.waiting) > postPending {
			t.Errorf("%d reports wait, at most %d should", len(p.waiting), postPending)
		}
		p.mu.Unlock()
	}
	p.last(int64(before+away)*1e9+5, []byte("books"), &protocol.Final{Part: &engine.WorkerResult{FirstNS: 7}, Extremes: want.Extremes()})
	if p.wait(50*time.Millisecond, nil) {
		t.Error("the last report was taken by a server that is away")
	}
	o.open(t)
	if !p.wait(patience, nil) {
		t.Fatalf("the last report was not taken within %v", patience)
	}
	all, _ := o.read(t)
	var got measure.Snapshot
	events := 0
	for i, r := range all {
		if r.Seq != uint64(i+1) || r.Agent != "a" || (r.Final != nil) != (i == len(all)-1) {
			t.Errorf("report %d is number %d of %q, last: %v", i+1, r.Seq, r.Agent, r.Final != nil)
		}
		got.Add(&r.Interval)
		for _, e := range r.Events {
			events++
			if e.Text != fmt.Sprint(events) {
				t.Errorf("event %d is %q", events, e.Text)
			}
		}
	}
	got.Widen(&all[len(all)-1].Final.Extremes)
	for k := range want.Kinds {
		for p := range want.Kinds[k] {
			fleettest.Same(t, measure.Kind(k).String(), &got.Kinds[k][p], &want.Kinds[k][p])
		}
	}
	if got.Counters != want.Counters || got.Window != want.Window {
		t.Errorf("counters %+v and window %+v, want %+v and %+v", got.Counters, got.Window, want.Counters, want.Window)
	}
	if len(all) > before+postPending+2 {
		t.Errorf("%d reports, want at most the %d before, those that waited (%d) and one under way", len(all), before, postPending)
	}
	if events != before+away {
		t.Errorf("%d events, want %d", events, before+away)
	}
	if last := all[len(all)-1]; string(last.Ledger) != "books" || last.Final.Part.FirstNS != 7 || last.At != int64(before+away)*1e9+5 {
		t.Errorf("the last report has a ledger %q and %+v of %d", last.Ledger, last.Final, last.At)
	}
}

// A message sent again because its acknowledgement was lost is stored once.
func TestResentReportIsStoredOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	p := o.posting(t)
	r := &protocol.Report{Agent: "a", Seq: 1, At: 5, Ledger: make([]byte, 2<<20)}
	_, _ = rand.NewChaCha8([32]byte{}).Read(r.Ledger) // not to be compressed: it has several pieces
	if !p.send(t.Context(), r) {
		t.Fatal("not sent")
	}
	_, once := o.read(t)
	if once < 2 {
		t.Fatalf("the report went in %d piece", once)
	}
	if !p.send(t.Context(), r) {
		t.Fatal("not sent again")
	}
	if all, messages := o.read(t); len(all) != 1 || messages != once {
		t.Errorf("%d reports in %d messages, want 1 in %d", len(all), messages, once)
	}
}

// The ledger that waits is the latest.
func TestOnlyLatestWaitingLedgerIsSent(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	nc, id := dial(t, o.keep.Own(o.JoinURL("", admission.Token{})))
	p := must.Get(newPost(nc, protocol.ReportSubject("s", "run", id), "a", "x", slog.New(slog.DiscardHandler)))(t)
	l := ledger.New(ledger.Config{Streams: 1})
	var part ledger.Part
	for at := range int64(2 * postPending) { // nobody posts yet
		l.Part(&part)
		p.ledger(at+1, &part)
	}
	p.last(1000, nil, &protocol.Final{Part: &engine.WorkerResult{}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.run(ctx); close(done) }()
	if !p.wait(patience, nil) {
		t.Fatal("not taken")
	}
	cancel()
	<-done
	all, _ := o.read(t)
	if len(all) != postPending {
		t.Errorf("%d reports, want %d", len(all), postPending)
	}
	for i := 1; i < len(all); i++ {
		if all[i].At <= all[i-1].At {
			t.Errorf("report %d of %d comes after one of %d", i+1, all[i].At, all[i-1].At)
		}
	}
}
