package exec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/weirmq/weir/driver"
)

func frame(k kind, body ...byte) []byte {
	b := append(begin(nil, k), body...)
	finish(b, 0)
	return b
}

// FuzzFrames: any input either fails or yields parts that lie within the frame.
func FuzzFrames(f *testing.F) {
	message := &driver.Message{Key: []byte("k"), Payload: []byte("payload")}
	f.Add(frame(publish, appendMessage([]byte{0, 0, 0, 1}, 7, 1, message)...))
	f.Add(frame(hello, fields{"can": {"keys", "consumers"}, "protocol": {"1"}}.append(nil)...))
	f.Add(frame(answer, append([]byte{0, 0, 0, 9}, fields{"error": {"auth"}, "text": {"no"}}.append(nil)...)...))
	f.Add(frame(complete, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 2, 0, 1, 'x'))
	f.Add(frame(deliver, 0, 0, 0, 1, 255, 255, 255, 255, 0, 0, 2, 0, 0, 0, 1, 'k', 0, 0, 0, 1, 'p'))
	f.Add(append(frame(ready), 1, 2, 3))
	f.Add([]byte{255, 255, 255, 255, 8})
	f.Fuzz(func(t *testing.T, sent []byte) {
		in := newFrames(bytes.NewReader(sent))
		read := 0
		for {
			k, body, err := in.next()
			if err != nil {
				if !errors.Is(err, errMalformed) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("reading ends with %v", err)
				}
				return
			}
			if read += header + len(body); read > len(sent) {
				t.Fatalf("%d bytes were read of %d", read, len(sent))
			}
			for _, parse := range []func(c *cursor) int{
				func(c *cursor) (n int) {
					for name, values := range readFields(c) {
						n += len(name) * len(values)
						for _, v := range values {
							n += len(v)
						}
					}
					return n
				},
				func(c *cursor) (n int) {
					for len(c.b) > 0 && !c.failed {
						_ = readFate(c)
						n += 13
					}
					return n
				},
				func(c *cursor) (n int) {
					for len(c.b) > 0 && !c.failed {
						d := readDelivery(c, 3)
						n += len(d.Key) + len(d.Payload)
						if !c.failed && (d.Source < -1 || d.Source > 2 || d.Partition < -1) {
							t.Fatalf("source %d, partition %d", d.Source, d.Partition)
						}
					}
					return n
				},
			} {
				c := &cursor{b: body}
				if n := parse(c); c.err(k) == nil && n > len(body) {
					t.Fatalf("%d bytes out of %d", n, len(body))
				}
			}
		}
	})
}

// TestALengthAloneCostsNoMemory: if a child announces the largest frame and sends nothing, weir
// allocates only one step.
func TestALengthAloneCostsNoMemory(t *testing.T) {
	head := append(binary.BigEndian.AppendUint32(nil, mostFrame), byte(deliver))
	in := newFrames(bytes.NewReader(head))
	if _, _, err := in.next(); !errors.Is(err, errMalformed) {
		t.Errorf("a frame without its body: %v", err)
	}
	if cap(in.body) > 2*growth {
		t.Errorf("%d bytes were allocated", cap(in.body))
	}
}

// TestFieldsRoundTrip covers names with several values, empty ones and arbitrary bytes.
func TestFieldsRoundTrip(t *testing.T) {
	want := fields{"a": {"1", "2"}, "empty": {""}, "bytes": {"\x00\xff,="}}
	c := &cursor{b: want.append(nil)}
	got := readFields(c)
	if err := c.err(answer); err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for name, values := range want {
		for i, v := range values {
			if got[name][i] != v {
				t.Errorf("%s: %q", name, got[name])
			}
		}
	}
}
