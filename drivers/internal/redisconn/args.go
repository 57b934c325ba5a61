package redisconn

import (
	"fmt"

	"github.com/weirmq/weir/driver"
)

// largest is what a server takes of one argument unless told otherwise
// (proto-max-bulk-len).
const largest = 512 << 20

// CheckSize refuses messages of that many bytes; 0 is not known.
func CheckSize(n int) error {
	if n <= largest {
		return nil
	}
	return fmt.Errorf("%w: %s, a server takes up to %s (its proto-max-bulk-len)", driver.ErrTooLarge,
		driver.FormatSize(int64(n)), driver.FormatSize(largest))
}

// Args are a command's arguments, kept as a message's scratch so that one sent
// again makes none. The client reads them when it writes the command.
type Args struct {
	all   []any
	blobs [2]blob
	used  int
}

// A blob is bytes that the client takes as they are; as a []byte they would have
// to be boxed for each message.
type blob struct{ b []byte }

// MarshalBinary implements encoding.BinaryMarshaler.
func (b *blob) MarshalBinary() ([]byte, error) { return b.b, nil }

// ArgsOf returns the arguments kept with a message.
func ArgsOf(m *driver.Message) *Args {
	a, ok := m.Slot.(*Args)
	if !ok {
		a = &Args{}
		m.Slot = a
	}
	return a
}

// Fill begins anew with arguments that are the same for many messages.
func (a *Args) Fill(head []any) *Args {
	a.all, a.used = append(a.all[:0], head...), 0
	return a
}

// Field appends a name and bytes. There may be two of them, and of Bytes.
func (a *Args) Field(name any, b []byte) *Args {
	a.all = append(a.all, name)
	return a.Bytes(b)
}

// Bytes appends bytes.
func (a *Args) Bytes(b []byte) *Args {
	x := &a.blobs[a.used]
	a.used++
	x.b = b
	a.all = append(a.all, x)
	return a
}

// All returns the arguments, which are a's.
func (a *Args) All() []any { return a.all }
