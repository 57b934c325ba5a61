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

// A Link is the network of a run, seen from the process of the clients, which Enter
// started. Its methods may be called concurrently.
type Link struct {
	process *guard.Process
	told    announcement

	mu    sync.Mutex // of an order and its answer
	conn  net.Conn
	lines *bufio.Reader
}

// Start makes a network and returns when measuring has shown that it is as asked. Its error
// is ErrMissing where the host lacks something, and ErrNotAsAsked where that did not come
// about. self is weir's own binary. The network is there until Stop, or until this process
// is gone. It takes some two seconds, and a multiple of the latency.
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
	// The folder goes with the process: what it said is read before.
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
		if err := json.Unmarshal([]byte(rest), &l.told); err != nil {
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

// endGrace is how long a link has to end: it holds nothing that must be kept.
const endGrace = 300 * time.Millisecond

// stopLimit is how long the end of a link may take.
const stopLimit = 10 * time.Second

// failWord begins the line of a link that did not come about.
const failWord = "failed "

// refused is the error of a link that did not come about, of the line that it printed.
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

// Fail tells Start why the link of this process did not come about.
func Fail(stdout io.Writer, err error) {
	_, _ = fmt.Fprintln(stdout, failWord+strings.ReplaceAll(err.Error(), "\n", "; "))
}

// Network returns what was asked for and measured.
func (l *Link) Network() result.Network { return l.told.Network }

// Within calls f on a thread in the servers' namespace. Processes that f starts are there.
func (l *Link) Within(f func() error) error { return within(l.told.Space, f) }

// Done is closed when the link is gone.
func (l *Link) Done() <-chan struct{} { return l.process.Done() }

// Stop ends the network. Servers that are still in it keep their namespace, without a device.
func (l *Link) Stop(ctx context.Context) error {
	_ = l.conn.Close()
	return l.process.Stop(ctx)
}

// Cut cuts directions, those that are true, and mends the others. When it returns it is done.
func (l *Link) Cut(to, from bool) error {
	_, err := l.ask(order{Cut: &cut{to, from}})
	return err
}

// Nodes returns where the nodes of the Spec are.
func (l *Link) Nodes() []Node { return l.told.Nodes }

// Sever has the two addresses of each pair not reach each other, and mends all others. When
// it returns it is done. Nothing and no one is told.
func (l *Link) Sever(pairs []Pair) error {
	pairs = append([]Pair{}, pairs...) // null would be no order
	_, err := l.ask(order{Sever: &pairs})
	return err
}

// Carried returns what the link did with packets since it was proved.
func (l *Link) Carried() (to, from Counts, err error) {
	a, err := l.ask(order{Stat: true})
	return a.To.minus(l.told.To), a.From.minus(l.told.From), err
}

// ask gives an order and waits for its answer.
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
