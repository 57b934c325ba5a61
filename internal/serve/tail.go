package serve

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/weirmq/weir/result"
)

// A tailing reads a file that another process is appending to. It ends when the run has its result and the
// file is read completely, or when ctx ends.
type tailing struct {
	ctx   context.Context //nolint:containedctx // of the one reader, which io.Reader cannot be given
	f     *os.File
	ended func() bool
}

// tail opens a file of the run, waiting until it exists.
func (c *course) tail(ctx context.Context, name string) (*tailing, error) {
	ended := func() bool { return c.index.Has(c.dir, result.FileResult) }
	for {
		last := ended()
		f, err := c.index.File(c.dir, name)
		if err == nil {
			return &tailing{ctx, f, ended}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || last {
			return nil, err
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// Read waits until there is something to read.
func (t *tailing) Read(b []byte) (int, error) {
	for {
		last := t.ended() // before the read, which then sees everything written
		n, err := t.f.Read(b)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		if last {
			return 0, io.EOF
		}
		if err := pause(t.ctx); err != nil {
			return 0, err
		}
	}
}

func (t *tailing) close() { _ = t.f.Close() } // only read

// pause waits until the next check is due.
func pause(ctx context.Context) error {
	t := time.NewTimer(betweenLooks)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
