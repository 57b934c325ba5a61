package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// maxEvent bounds a line of events.jsonl.
const maxEvent = 1 << 20

// Events reads the lines of an events.jsonl after its first. An error, which is a
// *FileError that names the line, is the last that it yields: ErrTorn for the last line
// of a file after its writer was killed. It comes after all others.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := newLineReader(r, maxEvent)
		for first := true; ; first = false {
			b, err := lines.next()
			if errors.Is(err, io.EOF) {
				if first {
					yield(Event{}, &FileError{Err: fmt.Errorf("%w: it is empty", ErrTorn)})
				}
				return
			}
			var e Event
			if err == nil {
				if first {
					err = decodeJSON(b, SchemaEvents, &struct{}{})
				} else {
					err = decodeEvent(b, &e)
				}
				if err != nil {
					err = lines.place(err)
				}
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			if !first && !yield(e, nil) {
				return
			}
		}
	}
}

// decodeEvent reads one line, which names no schema.
func decodeEvent(b []byte, e *Event) error {
	if err := weigh(b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, e); err != nil {
		err = jsonError(b, err, SchemaEvents)
		if errors.Is(err, ErrNotResult) { // not even an object
			return &FileError{Err: fmt.Errorf("%w: no event", ErrMalformed)}
		}
		return err
	}
	return nil
}

// place puts an error about the text of the line just read into its file. What
// ends too early is torn at the end of the file only.
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
