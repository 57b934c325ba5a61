package rabbitmq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
)

// A hearing notes what it is told.
type hearing struct{ heard []string }

func (h *hearing) confirmed(tag uint64, multiple, ok bool) {
	h.heard = append(h.heard, fmt.Sprintf("confirmed %d %v %v", tag, multiple, ok))
}

func (h *hearing) returned(code uint16, body []byte) {
	h.heard = append(h.heard, fmt.Sprintf("returned %d %q", code, body))
}

func (h *hearing) delivered() { h.heard = append(h.heard, "delivered") }

// frame makes a frame of the protocol.
func frame(kind byte, payload ...byte) []byte {
	b := []byte{kind, 0, 1}
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(append(b, payload...), 0xCE)
}

// basic makes the payload of a method of that class.
func basic(method uint16, arguments ...byte) []byte {
	return append([]byte{0, 60, byte(method >> 8), byte(method)}, arguments...)
}

// content makes the frames of a message's body.
func content(body string, pieces ...string) []byte {
	header := append([]byte{0, 60, 0, 0}, binary.BigEndian.AppendUint64(nil, uint64(len(body)))...)
	out := frame(frameHeader, append(header, 0, 0)...)
	for _, p := range pieces {
		out = append(out, frame(frameBody, []byte(p)...)...)
	}
	return out
}

func TestWhatTheServerSendsIsHeardHoweverItIsCut(t *testing.T) {
	tag := func(n uint64, bits byte) []byte { return append(binary.BigEndian.AppendUint64(nil, n), bits) }
	stream := slices.Concat(
		frame(frameMethod, 0, 10, 0, 10, 0, 9, 1), // connection.start
		frame(8), // heartbeat
		frame(frameMethod, basic(basicAck, tag(1, 0)...)...),
		frame(frameMethod, basic(basicDeliver, 3, 'a', 'b', 'c')...), content("payload", "pay", "load"),
		frame(frameMethod, basic(basicReturn, 1, 56, 0, 0, 0)...), content("came back", "came", " back"),
		frame(frameMethod, basic(basicReturn, 1, 56, 0, 0, 0)...), content(""),
		frame(frameMethod, basic(basicAck, tag(1<<40, 1)...)...),
		frame(frameMethod, basic(basicNack, tag(7, 3)...)...),
		frame(frameMethod, 0, 20, 0, 80, 1, 2, 3), // not basic
	)
	want := []string{
		"confirmed 1 false true", "delivered", `returned 312 "came back"`, `returned 312 ""`,
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

// TestAWireWritesWhatItTookInOrder writes in many pieces, of which some come while
// others are being written.
func TestAWireWritesWhatItTookInOrder(t *testing.T) {
	a, b := net.Pipe()
	w := newWire(a, nil, nil)
	const n = 20_000
	got := make(chan error, 1)
	go func() {
		for i := range uint32(n) {
			var have [4]byte
			if _, err := io.ReadFull(b, have[:]); err != nil || binary.BigEndian.Uint32(have[:]) != i {
				got <- fmt.Errorf("number %d came as %x: %w", i, have, err)
				return
			}
		}
		got <- nil
	}()
	for i := range uint32(n) {
		if _, err := w.Write(binary.BigEndian.AppendUint32(nil, i)); err != nil {
			t.Fatal(err)
		}
		for i%300 == 0 && w.out.Load() < w.taken() { // begin again from nothing
			runtime.Gosched()
		}
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	<-w.ended
	if _, err := w.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("writing to what is closed: %v", err)
	}
}

func TestAWireWhoseReaderStandsStillHoldsNobodyUp(t *testing.T) {
	a, b := net.Pipe() // nobody reads b
	defer func() { _ = b.Close() }()
	w := newWire(a, nil, nil)
	for range 1000 {
		if _, err := w.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.taken(); n != 1_000_000 {
		t.Errorf("took %d bytes", n)
	}
	_ = w.Close()
	<-w.ended
}
