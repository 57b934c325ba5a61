package redisconn

import (
	"context"
	"strconv"
	"unsafe"

	"github.com/weirmq/weir/driver"
)

// A server takes so much of one argument: at least, and unless told otherwise.
// (proto-max-bulk-len; https://redis.io/docs/latest/develop/reference/protocol-spec/)
const (
	largestLeast = 1 << 20
	largest      = 512 << 20
)

// CheckSize refuses messages of that many bytes if the server says that it does
// not take them; 0 is not known.
func (l *Link) CheckSize(ctx context.Context, n int) error {
	if n <= largestLeast {
		return nil
	}
	told, err := l.ConfigGet(ctx, "proto-max-bulk-len").Result()
	if !Answered(err) {
		return Unreachable(err)
	}
	most, err := strconv.ParseInt(told["proto-max-bulk-len"], 10, 64)
	if err != nil {
		most = largest
	}
	return driver.CheckSize(n, most, "the server's proto-max-bulk-len")
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

func (a *Args) Bytes(b []byte) *Args {
	x := &a.blobs[a.used]
	a.used++
	x.b = b
	a.all = append(a.all, x)
	return a
}

// All returns the arguments, which are a's.
func (a *Args) All() []any { return a.all }

// Bytes returns the bytes of a string that the client yielded, without a copy. They
// are read only: the string has them still.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
