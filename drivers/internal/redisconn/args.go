package redisconn

import (
	"context"
	"strconv"
	"unsafe"

	"github.com/weirmq/weir/driver"
)

// Limits for one argument: the minimum, and the server's default (proto-max-bulk-len;
// https://redis.io/docs/latest/develop/reference/protocol-spec/).
const (
	largestLeast = 1 << 20
	largest      = 512 << 20
)

// CheckSize returns an error if the server reports that it does not accept messages of n bytes; 0:
// size unknown.
func (l *Link) CheckSize(ctx context.Context, n int) error {
	if n <= largestLeast {
		return nil
	}
	answer, err := l.ConfigGet(ctx, "proto-max-bulk-len").Result()
	if !Answered(err) {
		return Unreachable(err)
	}
	most, err := strconv.ParseInt(answer["proto-max-bulk-len"], 10, 64)
	if err != nil {
		most = largest
	}
	return driver.CheckSize(n, most, "the server's proto-max-bulk-len")
}

// Args holds a command's arguments, kept as a message's scratch so that resending it allocates
// nothing. The client reads them when it writes the command.
type Args struct {
	all   []any
	blobs [2]blob
	used  int
}

// A blob holds bytes that the client takes without copying; a []byte would have to be boxed for
// each message.
type blob struct{ b []byte }

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

// Fill resets the arguments to head, which many messages share.
func (a *Args) Fill(head []any) *Args {
	a.all, a.used = append(a.all[:0], head...), 0
	return a
}

// Field appends a name and bytes. At most two calls of Field and Bytes are allowed.
func (a *Args) Field(name any, b []byte) *Args {
	a.all = append(a.all, name)
	return a.Bytes(b)
}

func (a *Args) Bytes(b []byte) *Args {
	x := &a.blobs[a.used]
	a.used++
	x.b = b
	a.all = append(a.all, x)
	return a
}

// All returns the arguments; the slice belongs to a.
func (a *Args) All() []any { return a.all }

// Bytes returns a client string's bytes without a copy. They are read-only, because the string
// shares them.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
