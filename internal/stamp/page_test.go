package stamp

import (
	"bytes"
	"encoding/hex"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

const page = "../../docs/formats/stamp.md"

// A field is a row of the page's layout.
type field struct {
	offset, length int
	name           string
}

// layout parses the fields from the page.
func layout(t *testing.T, text string) []field {
	t.Helper()
	var fields []field
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \| ([^|]+) \|`).FindAllStringSubmatch(text, -1) {
		offset, _ := strconv.Atoi(m[1])
		length, _ := strconv.Atoi(m[2])
		fields = append(fields, field{offset, length, m[3]})
	}
	return fields
}

// example parses the payload of the worked example from the page, and the bytes and value of each
// field.
func example(t *testing.T, text string) (payload []byte, parts map[string][]byte, values map[string]uint64) {
	t.Helper()
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
		if err != nil {
			t.Fatalf("%s: %v in %q", page, err, s)
		}
		return b
	}
	block := regexp.MustCompile("(?s)```hex\n(.*?)```").FindStringSubmatch(text)
	if block == nil {
		t.Fatalf("%s has no block of hex", page)
	}
	parts, values = map[string][]byte{}, map[string]uint64{}
	for _, m := range regexp.MustCompile("(?m)^\\| ([^|]+) \\| `([0-9a-f ]+)` \\| (\\d+) \\|").FindAllStringSubmatch(text, -1) {
		parts[m[1]] = unhex(m[2])
		values[m[1]], _ = strconv.ParseUint(m[3], 10, 64)
	}
	return unhex(block[1]), parts, values
}

// crc32c computes CRC-32C bit by bit, as the page describes it.
func crc32c(b []byte) uint32 {
	c := uint32(0xffffffff)
	for _, x := range b {
		c ^= uint32(x)
		for range 8 {
			c = c>>1 ^ 0x82f63b78*(c&1)
		}
	}
	return c ^ 0xffffffff
}

// The decoder here uses only the page: its layout and its two checksums.
func TestPageSufficesToDecodeExample(t *testing.T) {
	raw := must.Get(os.ReadFile(page))(t)
	fields := layout(t, string(raw))
	payload, parts, values := example(t, string(raw))
	if len(fields) != 9 || len(parts) != len(fields) {
		t.Fatalf("%s has %d fields in its layout and %d in its example; want 9", page, len(fields), len(parts))
	}
	if got := crc32c([]byte("123456789")); got != 0xe3069283 {
		t.Fatalf("CRC-32C of 123456789 = %#x; the page says 0xe3069283", got)
	}
	next := 0
	got := map[string]uint64{}
	for _, f := range fields {
		if f.offset != next {
			t.Errorf("field %q is at %d; the one before ends at %d", f.name, f.offset, next)
		}
		next = f.offset + f.length
		b := payload[f.offset:next]
		if !bytes.Equal(b, parts[f.name]) {
			t.Errorf("field %q is %x in the payload and %x in the example's table", f.name, b, parts[f.name])
		}
		for i, x := range b {
			got[f.name] |= uint64(x) << (8 * i)
		}
		if got[f.name] != values[f.name] {
			t.Errorf("field %q is %d; the example says %d", f.name, got[f.name], values[f.name])
		}
	}
	if next != Size {
		t.Errorf("the layout has %d bytes; want %d", next, Size)
	}
	if c := crc32c(payload[Size:]); uint64(c) != got["body CRC"] {
		t.Errorf("CRC-32C of the body = %#x; the example says %#x", c, got["body CRC"])
	}
	c := crc32c(append(bytes.Clone(payload[:2]), payload[4:Size]...))
	if folded := uint64(c>>16 ^ c&0xffff); folded != got["header check"] {
		t.Errorf("header check = %#x; the example says %#x", folded, got["header check"])
	}

	want := Stamp{
		Run: uint32(got["run"]), Stream: uint32(got["stream"]), CRC: uint32(got["body CRC"]),
		Seq: got["sequence"], Due: int64(got["due"]), Start: int64(got["due"] + got["delay"]), Share: uint8(got["late share"]),
	}
	var s Stamp
	if status := Read(payload, want.Run, &s); status != Good || s != want {
		t.Errorf("Read = %v %+v; the page says good %+v", status, s, want)
	}
	if late := Lateness(s.Share, s.Start-s.Due); late != 9876 || !strings.Contains(string(raw), "= 9,876 ns were lateness") {
		t.Errorf("the example was late by %d ns; the page says 9,876", late)
	}
	again := make([]byte, Size)
	if Put(again, &want); !bytes.Equal(again, payload[:Size]) {
		t.Errorf("Put = %x; the page says %x", again, payload[:Size])
	}
}
