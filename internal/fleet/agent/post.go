package agent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
)

// Limits of a post.
const (
	postPending = 64 // waiting reports; beyond that the newest two are merged without loss
	pieceSize   = 512 << 10
	headRoom    = 4 << 10 // of a message, besides its payload
	ackLimit    = 5 * time.Second
	againAfter  = 500 * time.Millisecond
	endingLimit = 5 * time.Second // for the last report, once the agent should end
)

// A post sends an agent's reports to the coordinator's stream: in order, each until it is stored. Reports
// that cannot be sent wait, and are merged rather than dropped.
type post struct {
	js      jetstream.JetStream
	nc      *nats.Conn
	subject string
	agent   string
	id      string // prefix of the messages' ids
	log     *slog.Logger
	encoder protocol.ReportEncoder

	mu      sync.Mutex
	waiting []*protocol.Report
	events  []engine.Event
	left    int // events that did not fit in a report
	seq     uint64
	wake    chan struct{}
	ended   bool          // the last report was added
	taken   chan struct{} // closed when the last report was stored
}

func newPost(nc *nats.Conn, subject, agent, id string, log *slog.Logger) (*post, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("preparing the reports: %w", err)
	}
	return &post{js: js, nc: nc, subject: subject, agent: agent, id: id, log: log, wake: make(chan struct{}, 1), taken: make(chan struct{})}, nil
}

// interval adds the measurements since the last one.
func (p *post) interval(iv *measure.Interval) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.next(iv.To)
	if r.Interval.To == 0 {
		r.Interval.Assign(iv)
	} else {
		r.Interval.Merge(iv)
	}
	p.rouse()
}

// ledger adds the state of the ledger.
func (p *post) ledger(at int64, part *ledger.Part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.next(at)
	b, err := part.AppendBinary(r.Ledger[:0])
	if err != nil {
		p.log.Warn("the ledger could not be sent", "why", err)
		return
	}
	r.Ledger = b
	p.rouse()
}

// event adds an event to the next report.
func (p *post) event(e engine.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.events) == protocol.MaxEvents {
		p.left++
		return
	}
	p.events = append(p.events, protocol.ShortEvent(e))
}

// last adds the last report.
func (p *post) last(at int64, ledger []byte, final *protocol.Final) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.next(at)
	r.Ledger, r.Final = ledger, final
	p.ended = true
	p.rouse()
}

// next returns the report for new data: a fresh one, or the newest if too many wait.
func (p *post) next(at int64) *protocol.Report {
	if n := len(p.waiting); n >= postPending {
		r := p.waiting[n-1]
		r.At = max(r.At, at)
		return r
	}
	r := &protocol.Report{Agent: p.agent, At: at}
	p.waiting = append(p.waiting, r)
	return r
}

func (p *post) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// wait waits until the last report was stored, at most that long, and only briefly once ending is closed.
func (p *post) wait(most time.Duration, ending <-chan struct{}) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		select {
		case <-p.taken:
			return true
		case <-ending:
			ending = nil
			timer.Reset(min(most, endingLimit))
		case <-timer.C:
			return false
		}
	}
}

// run sends reports until ctx ends.
func (p *post) run(ctx context.Context) {
	for {
		r := p.take()
		if r == nil {
			select {
			case <-p.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		if !p.send(ctx, r) {
			return
		}
		if r.Final != nil {
			close(p.taken)
			return
		}
	}
}

// take removes the oldest waiting report.
func (p *post) take() *protocol.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		return nil
	}
	r := p.waiting[0]
	p.waiting = p.waiting[1:]
	p.seq++
	r.Seq = p.seq
	if p.left > 0 {
		p.events = append(p.events, engine.Event{At: r.At, Kind: "events-cut", Text: fmt.Sprintf("%d more events of this report were left out", p.left)})
	}
	r.Events, p.events, p.left = p.events, nil, 0
	return r
}

// send sends a report until it is stored; false if ctx ends before.
func (p *post) send(ctx context.Context, r *protocol.Report) bool {
	b, err := p.encoder.Encode(r)
	if err != nil {
		// The report is too large. What matters is in the next one's ledger and in the last one's extremes;
		// only this second's histograms are lost, and the coordinator sees the gap.
		p.log.Error("a report cannot be sent", "seq", r.Seq, "why", err)
		return true
	}
	most := min(pieceSize, int(p.nc.MaxPayload())-headRoom)
	for i, piece := range protocol.Split(r.Seq, b, most) {
		m := &nats.Msg{Subject: p.subject, Data: piece, Header: nats.Header{nats.MsgIdHdr: {fmt.Sprintf("%s.%d.%d", p.id, r.Seq, i)}}}
		for said := false; ; {
			attempt, cancel := context.WithTimeout(ctx, ackLimit)
			_, err := p.js.PublishMsg(attempt, m)
			cancel()
			if err == nil {
				break
			}
			if !said {
				said = true
				p.log.Warn("a report was not taken yet", "seq", r.Seq, "why", err)
			}
			select {
			case <-time.After(againAfter):
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}
