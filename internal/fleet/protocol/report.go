package protocol

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/measure"
)

// Limits of a report.
const (
	MaxReport = 64 << 20 // bytes of its JSON
	MaxEvents = 1000     // plus one that counts the omitted ones
	maxKind   = 256      // bytes of an event's kind
	maxText   = 4096     // bytes of an event's text
)

// A Report has an agent's measurements since its last report, and the state of its ledger. It is sent as
// gzipped JSON.
type Report struct {
	Agent    string           `json:"agent"`
	Seq      uint64           `json:"seq"` // from 1, consecutive: a gap is a lost report
	At       int64            `json:"at"`  // ns since the epoch by the agent's clock
	Interval measure.Interval `json:"interval"`
	Ledger   []byte           `json:"ledger,omitempty"` // see ledger.Part.AppendBinary
	Events   []engine.Event   `json:"events,omitempty"`
	Final    *Final           `json:"final,omitempty"` // in the last report
}

// A ReportEncoder reuses the memory of one report for the next. The zero value is ready.
type ReportEncoder struct{ zip *gzip.Writer }

// Encode returns the encoded report.
func (e *ReportEncoder) Encode(r *Report) ([]byte, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding report %d: %w", r.Seq, err)
	}
	if len(plain) > MaxReport {
		return nil, fmt.Errorf("encoding report %d: %d bytes (at most %d)", r.Seq, len(plain), MaxReport)
	}
	if e.zip == nil {
		e.zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for unknown levels
	}
	var b bytes.Buffer
	e.zip.Reset(&b)
	_, err = e.zip.Write(plain)
	err = errors.Join(err, e.zip.Close())
	return b.Bytes(), err
}

// A ReportDecoder reuses the memory of one report for the next: an agent's histograms take some MiB. The zero value is ready.
type ReportDecoder struct {
	zip    gzip.Reader
	plain  bytes.Buffer
	report Report
}

// Decode decodes what Encode returned. Its errors are ErrMalformed. The report's interval is valid until the next call.
func (d *ReportDecoder) Decode(b []byte) (*Report, error) {
	if err := d.zip.Reset(bytes.NewReader(b)); err != nil {
		return nil, fmt.Errorf("%w: it is not a report: %w", ErrMalformed, err)
	}
	d.plain.Reset()
	if _, err := d.plain.ReadFrom(io.LimitReader(&d.zip, MaxReport+1)); err != nil {
		return nil, fmt.Errorf("%w: it is not a report: %w", ErrMalformed, err)
	}
	r := &d.report
	kinds := &r.Interval.Kinds
	for k := range kinds {
		for p := range kinds[k] {
			kinds[k][p].Reset()
		}
	}
	*r = Report{Interval: measure.Interval{Kinds: *kinds}}
	if err := Decode(d.plain.Bytes(), MaxReport, r); err != nil {
		return nil, err
	}
	return r, r.check()
}

// check returns ErrMalformed for an invalid report.
func (r *Report) check() error {
	if r.Agent == "" || r.Seq == 0 || len(r.Events) > MaxEvents+1 {
		return fmt.Errorf("%w: a report without an agent or a number, or with %d events", ErrMalformed, len(r.Events))
	}
	for _, e := range r.Events {
		if len(e.Kind) > maxKind || len(e.Text) > maxText {
			return fmt.Errorf("%w: an event of %d bytes", ErrMalformed, len(e.Kind)+len(e.Text))
		}
	}
	if r.Final != nil {
		return r.Final.Check()
	}
	return nil
}

// ShortEvent shortens an event for a report, and marks cut text.
func ShortEvent(e engine.Event) engine.Event {
	e.Kind = start(e.Kind, maxKind)
	if n := len(e.Text); n > maxText {
		cut := fmt.Sprintf(" ... (%d bytes in all)", n)
		e.Text = start(e.Text, maxText-len(cut)) + cut
	}
	return e
}

// pieceHead is the length of a piece's header: the report's number in eight bytes, then the piece's index
// and the number of pieces in four each.
const pieceHead = 16

// Split cuts an encoded report into messages of at most that many bytes.
func Split(seq uint64, b []byte, most int) (pieces [][]byte) {
	room := max(most-pieceHead, 1)
	count := (len(b) + room - 1) / room
	for chunk := range slices.Chunk(b, room) {
		head := binary.BigEndian.AppendUint64(make([]byte, 0, pieceHead+len(chunk)), seq)
		head = binary.BigEndian.AppendUint32(head, uint32(len(pieces)))
		pieces = append(pieces, append(binary.BigEndian.AppendUint32(head, uint32(count)), chunk...))
	}
	return pieces
}

// An Assembler joins the pieces of an agent's reports. They arrive in order, since an agent sends a piece
// only after the previous one was stored. The zero value is ready.
type Assembler struct {
	seq         uint64
	next, count uint32
	b           []byte
}

// Add adds a piece and returns the report that it completes, or nil. It ignores repeated pieces; an invalid
// one is ErrMalformed.
func (a *Assembler) Add(piece []byte) (whole []byte, err error) {
	if len(piece) <= pieceHead {
		return nil, fmt.Errorf("%w: %d bytes, it is not a piece of a report", ErrMalformed, len(piece))
	}
	seq, index, count := binary.BigEndian.Uint64(piece), binary.BigEndian.Uint32(piece[8:]), binary.BigEndian.Uint32(piece[12:])
	if index == 0 {
		*a = Assembler{seq: seq, count: count}
	}
	same := seq == a.seq && count == a.count
	switch {
	case same && index < a.next:
		return nil, nil
	case !same || index > a.next || index >= count || len(a.b)+len(piece) > MaxReport:
		return nil, fmt.Errorf("%w: piece %d of %d of report %d, it is not a piece that follows another", ErrMalformed, uint64(index)+1, count, seq)
	}
	a.b = append(a.b, piece[pieceHead:]...)
	if a.next++; a.next < count {
		return nil, nil
	}
	whole, a.b = a.b, nil
	return whole, nil
}
