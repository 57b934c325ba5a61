package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
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
	return s[:most] // it is no UTF-8
}

// decodeBody sets r to what appendBody wrote. It copies out of b.
func decodeBody(b []byte, r *Report) error {
	d := decoder{b: b}
	if r.Agent = string(d.bytes("agent's name", MaxName)); r.Agent == "" {
		d.fail("no agent's name")
	}
	if r.Seq = d.uvarint(); r.Seq == 0 {
		d.fail("no number")
	}
	last := d.uvarint()
	if r.Last = last == 1; last > 1 {
		d.fail("%d, neither the last nor another report", last)
	}
	r.At = d.varint()
	d.measured("interval", r.Interval.DecodeBinary)
	d.measured("extremes", r.Extremes.DecodeBinary)
	r.Ledger = append(r.Ledger[:0], d.bytes("ledger", MaxReport)...)
	r.Status = append(r.Status[:0], d.bytes("status", MaxReport)...)
	r.Events = r.Events[:0]
	for range d.natural("number of events", MaxEvents) {
		e := Event{d.varint(), string(d.bytes("event's kind", MaxName)), string(d.bytes("event's text", MaxText))}
		if d.err != nil {
			return d.err
		}
		r.Events = append(r.Events, e)
	}
	r.Final = append(r.Final[:0], d.bytes("final", MaxReport)...)
	if len(d.b) > 0 {
		d.fail("%d bytes after the end", len(d.b))
	}
	return d.err
}

// A decoder reads a body from the front of b. After the first error it reads
// nothing more and returns zeros.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...)
		d.b = nil
	}
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	switch {
	case n == 0:
		d.fail("it ends too early")
		return 0
	case n < 0 || n > 1 && d.b[n-1] == 0:
		d.fail("a number of too many bytes")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// natural reads a number from 0 to most.
func (d *decoder) natural(what string, most int) int {
	v := d.uvarint()
	if v > uint64(min(most, math.MaxInt32)) {
		d.fail("%s: %d is more than %d", what, v, most)
		return 0
	}
	return int(v)
}

// bytes reads a length and so many bytes, which are those of d.b.
func (d *decoder) bytes(what string, most int) []byte {
	n := d.natural(what, most)
	if n > len(d.b) {
		d.fail("%s: it ends after %d of %d bytes", what, len(d.b), n)
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

// measured reads what package measure reads.
func (d *decoder) measured(what string, decode func([]byte) ([]byte, error)) {
	if d.err != nil {
		return
	}
	rest, err := decode(d.b)
	if err != nil {
		d.fail("%s: %w", what, err)
		return
	}
	d.b = rest
}
