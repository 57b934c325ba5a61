package netpartition

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/guard"
)

// Timeouts of Check: for its process, and for an answer that must not come.
const (
	checkLimit = 20 * time.Second
	heardLimit = 5 * time.Second
	cutLimit   = 150 * time.Millisecond
	endGrace   = 300 * time.Millisecond
)

// Check returns ErrMissing, with what is missing, if nodes cannot be partitioned on this host. It
// starts a process that listens in a control group, self with the arguments of Main, partitions it
// from clients, undoes that, and tests connections. It leaves nothing behind.
func Check(ctx context.Context, self string) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	dir, err := os.MkdirTemp("", "weir-cut-")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	group, err := Path(filepath.Base(dir))
	if err != nil {
		return err
	}
	out, outW, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	defer func() { _ = out.Close() }()
	p, err := guard.Start(ctx, self, guard.Spec{Args: []string{self, "internal", "cut", group}, Dir: dir, Group: group, Stdout: outW, Grace: endGrace})
	_ = outW.Close()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	defer func() { _ = p.Stop(context.WithoutCancel(ctx)) }()
	address, err := addressOf(ctx, out)
	if err != nil {
		return err
	}
	c, err := New(group, 1)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	for _, x := range []struct {
		cut   bool
		limit time.Duration
	}{{false, heardLimit}, {true, cutLimit}, {false, heardLimit}} {
		var pairs [][2]int
		if x.cut {
			pairs = [][2]int{{Clients, 1}}
		}
		if err := c.Part(pairs); err != nil {
			return err
		}
		switch err := reaches(ctx, address, x.limit); {
		case x.cut && err == nil:
			return fmt.Errorf("%w: an eBPF program was attached, and packets passed it (%s)", ErrMissing, needBPF)
		case !x.cut && err != nil:
			return fmt.Errorf("%w: a process in a control group is not reached on loopback: %w", ErrMissing, err)
		}
	}
	return nil
}

// addressOf reads the address on which the process of a check listens.
func addressOf(ctx context.Context, out *os.File) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = out.SetReadDeadline(time.Now()) })
	defer stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if rest, failed := strings.CutPrefix(line, failWord); failed {
		return "", fmt.Errorf("%w: %s", ErrMissing, strings.TrimSpace(strings.TrimPrefix(rest, ErrMissing.Error()+": ")))
	}
	switch {
	case err != nil && ctx.Err() != nil: // a busy host: it may work later
		return "", fmt.Errorf("trying to cut off a node: a process in a control group said nothing in time: %w", ctx.Err())
	case err != nil:
		return "", fmt.Errorf("%w: a process in a control group said nothing: %w", ErrMissing, err)
	}
	return strings.TrimSpace(line), nil
}

// reaches connects and waits for a byte.
func reaches(ctx context.Context, address string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	at, _ := ctx.Deadline()
	_ = c.SetDeadline(at)
	if _, err := c.Read(make([]byte, 1)); err != nil {
		return errors.Join(err, ctx.Err())
	}
	return nil
}
