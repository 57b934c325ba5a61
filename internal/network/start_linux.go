package network

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/result"
)

// A Link is the network of a run, for the clients' process, which Enter started. Its methods are safe
// for concurrent use.
type Link struct {
	process   *guard.Process
	announced announcement

	mu    sync.Mutex // held for an order and its answer
	conn  net.Conn
	lines *bufio.Reader
}

// Start creates a network and returns once measurements show that it is as asked. The error is
// ErrMissing if the host lacks something, and ErrNotAsAsked if the network does not behave as
// configured. self is weir's own binary. The network exists until Stop, or until this process is gone.
// Start takes some two seconds plus a multiple of the latency.
func Start(ctx context.Context, self string, spec Spec) (_ *Link, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit(spec))
	defer cancel()
	dir, err := os.MkdirTemp("", "weir-network-")
	if err != nil {
		return nil, fmt.Errorf("making the network: %w", err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	out, outW, err := os.Pipe()
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("making the network: %w", err)
	}
	p, err := guard.Start(ctx, self, guard.Spec{Args: []string{self, "internal", "network", dir, string(text)}, Dir: dir, RemoveDir: true, Stdout: outW, Grace: endGrace})
	_ = outW.Close()
	if err != nil {
		_, _ = out.Close(), os.RemoveAll(dir)
		return nil, fmt.Errorf("making the network: %w", err)
	}
	l := &Link{process: p}
	defer func() {
		if err != nil {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
			defer cancel()
			_ = p.Stop(ending)
		}
	}()
	// The folder is removed with the process, so its output is read before.
	line := make(chan string, 1)
	go func() {
		defer func() { _ = out.Close() }()
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		rest, ok := strings.CutPrefix(text, readyWord)
		if !ok {
			return nil, refused(text)
		}
		if err := json.Unmarshal([]byte(rest), &l.announced); err != nil {
			return nil, fmt.Errorf("making the network: reading its announcement: %w", err)
		}
	case <-ctx.Done():
		return nil, fmt.Errorf("making the network: %w", ctx.Err())
	}
	if l.conn, err = (&net.Dialer{}).DialContext(ctx, "unix", socketOf(dir)); err != nil {
		return nil, fmt.Errorf("making the network: %w", err)
	}
	l.lines = bufio.NewReader(l.conn)
	return l, nil
}

// endGrace is how long a link may take to end: it has no state to save.
const endGrace = 300 * time.Millisecond

// stopLimit is the time limit for stopping a link.
const stopLimit = 10 * time.Second

// failWord starts the line of a link that failed to start.
const failWord = "failed "

// refused returns the error of a link that failed to start, from the line that it printed.
func refused(line string) error {
	text := strings.TrimPrefix(line, failWord)
	for _, known := range []error{ErrMissing, ErrNotAsAsked} {
		if rest, ok := strings.CutPrefix(text, known.Error()+": "); ok {
			return fmt.Errorf("%w: %s", known, rest)
		}
	}
	if text == "" {
		text = "its process ended without a message"
	}
	return fmt.Errorf("making the network: %s", text)
}

// Fail reports to Start why the link in this process failed to start.
func Fail(stdout io.Writer, err error) {
	_, _ = fmt.Fprintln(stdout, failWord+strings.ReplaceAll(err.Error(), "\n", "; "))
}

// Network returns the requested and the measured network.
func (l *Link) Network() result.Network { return l.announced.Network }

// Within calls f on a thread in the servers' namespace; processes that f starts run there.
func (l *Link) Within(f func() error) error { return within(l.announced.Space, f) }

// Done is closed when the link is gone.
func (l *Link) Done() <-chan struct{} { return l.process.Done() }

// Stop ends the network. Servers still running in it keep their namespace, without a device.
func (l *Link) Stop(ctx context.Context) error {
	_ = l.conn.Close()
	return l.process.Stop(ctx)
}

// Cut cuts the directions that are true and restores the others, before it returns.
func (l *Link) Cut(to, from bool) error {
	_, err := l.ask(order{Cut: &cut{to, from}})
	return err
}

// Nodes returns the locations of the Spec's nodes.
func (l *Link) Nodes() []Node { return l.announced.Nodes }

// Sever drops all packets between the two addresses of each pair, silently, and restores all other
// pairs, before it returns.
func (l *Link) Sever(pairs []Pair) error {
	pairs = append([]Pair{}, pairs...) // null would mean no order
	_, err := l.ask(order{Sever: &pairs})
	return err
}

// Carried returns the counts of both directions since the network was verified.
func (l *Link) Carried() (to, from Counts, err error) {
	a, err := l.ask(order{Stat: true})
	return a.To.minus(l.announced.To), a.From.minus(l.announced.From), err
}

// ask sends an order and waits for the answer.
func (l *Link) ask(o order) (a answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := json.Marshal(o)
	if err != nil {
		return a, err
	}
	err = l.conn.SetDeadline(time.Now().Add(stopLimit))
	if err == nil {
		_, err = l.conn.Write(append(b, '\n'))
	}
	if err == nil {
		b, err = l.lines.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		err = fmt.Errorf("asking the network: %w", err)
	}
	return a, err
}
