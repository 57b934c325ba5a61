package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/varint"
)

// appendBody appends all that r says, in the order of its fields. A number is a
// varint of encoding/binary in its shortest form, a text or slice its length
// and its bytes.
func appendBody(b []byte, r *Report) ([]byte, error) {
	switch {
	case r.Agent == "" || len(r.Agent) > MaxName:
		return b, fmt.Errorf("an agent's name of %d bytes, which has 1 to %d", len(r.Agent), MaxName)
	case r.Seq == 0:
		return b, errors.New("no number")
	case len(r.Ledger) > MaxReport || len(r.Status) > MaxReport || len(r.Final) > MaxReport:
		return b, ErrTooLarge // before it is copied
	}
	b = appendBytes(b, r.Agent)
	b = binary.AppendUvarint(b, r.Seq)
	last := byte(0)
	if r.Last {
		last = 1
	}
	b = append(b, last)
	b = binary.AppendVarint(b, r.At)
	b, err := r.Interval.AppendBinary(b)
	if err != nil {
		return b, fmt.Errorf("interval: %w", err)
	}
	if b, err = r.Extremes.AppendBinary(b); err != nil {
		return b, fmt.Errorf("extremes: %w", err)
	}
	b = appendBytes(b, r.Ledger)
	b = appendBytes(b, r.Status)
	b = appendEvents(b, r.Events)
	b = appendBytes(b, r.Final)
	if len(b) > MaxReport {
		return b, ErrTooLarge
	}
	return b, nil
}

func appendBytes[T string | []byte](b []byte, v T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func appendEvents(b []byte, events []Event) []byte {
	b = binary.AppendUvarint(b, uint64(min(len(events), MaxEvents)))
	left := 0
	if len(events) > MaxEvents {
		left = len(events) - (MaxEvents - 1)
		events = events[:MaxEvents-1]
	}
	var at int64
	for i := range events {
		at = events[i].At
		b = appendEvent(b, at, events[i].Kind, events[i].Text)
	}
	if left > 0 {
		b = appendEvent(b, at, "events-cut", strconv.Itoa(left)+" more events of this report were left out")
	}
	return b
}

func appendEvent(b []byte, at int64, kind, text string) []byte {
	b = binary.AppendVarint(b, at)
	b = appendBytes(b, whole(kind, MaxName))
	if len(text) > MaxText {
		const room = len(" ... (18446744073709551615 bytes in all)")
		text = whole(text, MaxText-room) + " ... (" + strconv.Itoa(len(text)) + " bytes in all)"
	}
	return appendBytes(b, text)
}

// whole returns the first bytes of s, at most most, and no part of a character.
func whole(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for cut := most; cut > most-utf8.UTFMax; cut-- {
		if utf8.RuneStart(s[cut]) {
			return s[:cut]
		}
	}
	return s[:most] // it is not UTF-8
}

// decodeBody sets r to what appendBody wrote. It copies out of b.
func decodeBody(b []byte, r *Report) error {
	d := varint.NewReader(b)
	if r.Agent = string(d.Bytes("agent's name", MaxName)); r.Agent == "" {
		d.Fail("no agent's name")
	}
	if r.Seq = d.Uint(); r.Seq == 0 {
		d.Fail("no number")
	}
	last := d.Uint()
	if r.Last = last == 1; last > 1 {
		d.Fail("%d, neither the last nor another report", last)
	}
	r.At = d.Int()
	d.Part("interval", r.Interval.DecodeBinary)
	d.Part("extremes", r.Extremes.DecodeBinary)
	r.Ledger = append(r.Ledger[:0], d.Bytes("ledger", MaxReport)...)
	r.Status = append(r.Status[:0], d.Bytes("status", MaxReport)...)
	r.Events = r.Events[:0]
	for range d.UpTo("number of events", MaxEvents) {
		e := Event{d.Int(), string(d.Bytes("event's kind", MaxName)), string(d.Bytes("event's text", MaxText))}
		if d.Err() != nil {
			break
		}
		r.Events = append(r.Events, e)
	}
	r.Final = append(r.Final[:0], d.Bytes("final", MaxReport)...)
	if n := d.Left(); n > 0 {
		d.Fail("%d bytes after the end", n)
	}
	if err := d.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return nil
}
