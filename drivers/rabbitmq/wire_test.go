package rabbitmq

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// A hearing records what it receives.
type hearing struct{ heard []string }

func (h *hearing) confirmed(tag uint64, multiple, ok bool) {
	h.heard = append(h.heard, fmt.Sprintf("confirmed %d %v %v", tag, multiple, ok))
}

func (h *hearing) returned(code uint16, body []byte) {
	h.heard = append(h.heard, fmt.Sprintf("returned %d %q", code, body))
}

func (h *hearing) delivered() { h.heard = append(h.heard, "delivered") }
func (h *hearing) reading()   {}

// frame returns a protocol frame.
func frame(kind byte, payload ...byte) []byte {
	b := []byte{kind, 0, 1}
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(append(b, payload...), 0xCE)
}

// basic returns the payload of a basic method.
func basic(method uint16, arguments ...byte) []byte {
	return append([]byte{0, 60, byte(method >> 8), byte(method)}, arguments...)
}

// content returns the frames of a message body.
func content(body string, pieces ...string) []byte {
	header := append([]byte{0, 60, 0, 0}, binary.BigEndian.AppendUint64(nil, uint64(len(body)))...)
	out := frame(frameHeader, append(header, 0, 0)...)
	for _, p := range pieces {
		out = append(out, frame(frameBody, []byte(p)...)...)
	}
	return out
}

func TestFramesParseAcrossAnySplit(t *testing.T) {
	tag := func(n uint64, bits byte) []byte { return append(binary.BigEndian.AppendUint64(nil, n), bits) }
	stream := slices.Concat(
		frame(frameMethod, 0, 10, 0, 10, 0, 9, 1), // connection.start
		frame(8), // heartbeat
		frame(frameMethod, basic(basicAck, tag(1, 0)...)...),
		frame(frameMethod, basic(basicDeliver, 3, 'a', 'b', 'c')...), content("payload", "pay", "load"),
		frame(frameMethod, basic(basicReturn, 1, 56, 0, 0, 0)...), content("came back", "came", " back"),
		frame(frameMethod, basic(basicReturn, 1, 56, 0, 0, 0)...), content("late", "la"),
		frame(frameMethod, 0, 10, 0, 60, 0), frame(frameBody, 't', 'e'), // connection.blocked in between
		frame(frameMethod, basic(basicReturn, 1, 56, 0, 0, 0)...), content(""),
		frame(frameMethod, basic(basicAck, tag(1<<40, 1)...)...),
		frame(frameMethod, basic(basicNack, tag(7, 3)...)...),
		frame(frameMethod, 0, 20, 0, 80, 1, 2, 3), // not basic
	)
	want := []string{
		"confirmed 1 false true", "delivered", `returned 312 "came back"`, `returned 312 "late"`, `returned 312 ""`,
		"confirmed 1099511627776 true true", "confirmed 7 true false",
	}
	for size := 1; size <= len(stream); size++ {
		h := &hearing{}
		f := frames{to: h}
		for piece := range slices.Chunk(stream, size) {
			f.read(piece)
		}
		if !slices.Equal(h.heard, want) {
			t.Fatalf("in pieces of %d bytes: heard %q, want %q", size, h.heard, want)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(frame(frameMethod, basic(basicReturn, 1, 56, 0, 0)...))
	f.Add([]byte{1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(_ *testing.T, b []byte) {
		x := frames{to: &hearing{}}
		x.read(b)
	})
}
