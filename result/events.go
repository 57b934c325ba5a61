package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/measure"
)

// maxRecord bounds a line of events.jsonl and of host.jsonl.
const maxRecord = 1 << 20

// Events reads the lines of an events.jsonl after its first. An error, which is a *FileError that
// names the line, is the last item yielded, after all others: ErrTorn for the last line of a file
// whose writer was killed.
func Events(r io.Reader) iter.Seq2[Event, error] { return records[Event](r, SchemaEvents, "event") }

// Samples reads the lines of a host.jsonl after its first, with errors as in Events. It holds one
// at a time.
func Samples(r io.Reader) iter.Seq2[host.Sample, error] {
	return records[host.Sample](r, SchemaHost, "sample")
}

// A Progress is a line of live.jsonl: how far a run is. Its counts are since the run's start.
type Progress struct {
	TNS       int64  `json:"t_ns"` // since the epoch
	Scheduled uint64 `json:"scheduled"`
	Sent      uint64 `json:"sent"`
	Dropped   uint64 `json:"dropped"`
	Confirmed uint64 `json:"confirmed"`
	Failed    uint64 `json:"failed"`
	Received  uint64 `json:"received"`
	Backlog   uint64 `json:"backlog"` // of the subscription that is furthest behind
	Missed    uint64 `json:"missed"`  // that a lone consumer was passed over with, in a system that sends nothing twice
}

// Add adds an interval, and returns the sum.
func (p *Progress) Add(iv *measure.Interval) Progress {
	for i := range iv.Counters {
		c := &iv.Counters[i]
		p.Scheduled += c.Scheduled
		p.Sent += c.Sent
		p.Dropped += c.Dropped
		p.Confirmed += c.Confirmed
		p.Failed += c.Failed
		p.Received += c.Received
	}
	p.TNS, p.Backlog, p.Missed = iv.To, iv.Backlog.Waiting(), 0
	for _, b := range iv.Backlog {
		p.Missed += b.Passed
	}
	return *p
}

// AllProgress reads the lines of a live.jsonl after its first, with errors as in Events.
func AllProgress(r io.Reader) iter.Seq2[Progress, error] {
	return records[Progress](r, SchemaLive, "progress")
}

// records reads a log. Its first line names its schema.
func records[T any](r io.Reader, schema, what string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		lines := newLineReader(r, maxRecord)
		for first := true; ; first = false {
			var e, none T
			b, err := lines.next()
			if errors.Is(err, io.EOF) {
				if first {
					yield(none, &FileError{Err: fmt.Errorf("%w: it is empty", ErrTorn)})
				}
				return
			}
			if err == nil {
				if first {
					err = decodeJSON(b, schema, &struct{}{})
				} else {
					err = decodeRecord(b, &e, schema, what)
				}
				if err != nil {
					err = lines.place(err)
				}
			}
			if err != nil {
				yield(none, err)
				return
			}
			if !first && !yield(e, nil) {
				return
			}
		}
	}
}

// decodeRecord reads one line, which names no schema.
func decodeRecord(b []byte, e any, schema, what string) error {
	if err := weigh(b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, e); err != nil {
		err = jsonError(b, err, schema)
		if errors.Is(err, ErrNotResult) { // not even an object
			return &FileError{Err: fmt.Errorf("%w: no %s", ErrMalformed, what)}
		}
		return err
	}
	return nil
}

// place adds the line just read to an error about its text. Text that ends too early is torn only
// at the end of the file.
func (l *lineReader) place(err error) error {
	if l.open {
		return l.wrong(err)
	}
	placed := &FileError{Line: l.n, Err: err}
	if f := (*FileError)(nil); errors.As(err, &f) {
		placed.Column, placed.Err = f.Column, f.Err
	}
	if errors.Is(err, ErrTorn) {
		placed.Err = fmt.Errorf("%w: the line ends within its JSON", ErrMalformed)
	}
	return placed
}
