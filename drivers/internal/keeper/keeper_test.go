package keeper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/sockets"
	"github.com/weirmq/weir/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// errRefused is an answer from the server.
var errRefused = errors.New("refused")

// A client blocks and ignores contexts, like the clients that a Keeper is for.
type client struct {
	net.Conn
	answers *bufio.Reader
}

// ask sends a line, and returns errRefused if the answer differs from it.
func (c *client) ask(line string) error {
	if _, err := fmt.Fprintln(c, line); err != nil {
		return err
	}
	answer, err := c.answers.ReadString('\n')
	if err == nil && answer != line+"\n" {
		err = errRefused
	}
	return err
}

// A server echoes each line, except that it answers "no" with another line and "quiet" with
// nothing, and closes the connection on "end".
type server struct {
	t       *testing.T
	l       net.Listener
	mu      sync.Mutex
	open    map[net.Conn]bool
	serving sync.WaitGroup
}

func serve(t *testing.T) *server {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &server{t: t, l: l, open: map[net.Conn]bool{}}
	s.serving.Go(func() { s.accept(l) })
	t.Cleanup(s.close)
	return s
}

func (s *server) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open[c] = true
		s.mu.Unlock()
		s.serving.Go(func() {
			defer func() { _ = c.Close() }()
			for lines := bufio.NewScanner(c); lines.Scan(); {
				switch lines.Text() {
				case "end":
					return
				case "quiet":
					continue
				case "no":
					_, _ = fmt.Fprintln(c, "never")
				default:
					_, _ = fmt.Fprintln(c, lines.Text())
				}
			}
		})
	}
}

// close ends the listener and all connections.
func (s *server) close() {
	_ = s.l.Close()
	s.mu.Lock()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

// plan configures a connection to the server; events receives the reported events.
func (s *server) plan(limit time.Duration, events chan string) Plan[*client] {
	return Plan[*client]{
		Name: "producer 7", Limit: limit, Wait: time.Millisecond,
		Run: driver.Run{Event: func(kind, text string) {
			select {
			case events <- kind + " of " + text:
			default:
			}
		}},
		Connect: func(ctx context.Context, set *sockets.Set) (*client, error) {
			c, err := set.Dial(ctx, "tcp", s.l.Addr().String(), limit)
			if err != nil {
				return nil, err
			}
			return &client{c, bufio.NewReader(c)}, nil
		},
		Answer: func(err error) (error, bool) { return driver.ErrOverloaded, errors.Is(err, errRefused) },
	}
}

func keep(t *testing.T, p Plan[*client]) *Keeper[*client] {
	t.Helper()
	k := must.Get(Open(t.Context(), p))(t)
	t.Cleanup(k.Close)
	return k
}

func saying(line string) func(*client) error {
	return func(c *client) error { return c.ask(line) }
}

func TestAnsweredCallKeepsConnection(t *testing.T) {
	events := make(chan string, 9)
	k := keep(t, serve(t).plan(time.Minute, events))
	for range 3 {
		if err := k.Do(t.Context(), saying("a")); err != nil {
			t.Error(err)
		}
		if err := k.Do(t.Context(), saying("no")); !errors.Is(err, errRefused) || !errors.Is(err, driver.ErrOverloaded) {
			t.Errorf("%v", err)
		}
	}
	if len(events) > 0 {
		t.Errorf("told: %s", <-events)
	}
}

func TestACallAllocatesNothing(t *testing.T) {
	k := keep(t, serve(t).plan(time.Minute, nil))
	ctx, n := t.Context(), 0
	if a := testing.AllocsPerRun(200, func() {
		_ = k.Do(ctx, func(*client) error { n++; return nil })
	}); a > 0 {
		t.Errorf("%v allocations", a)
	}
}

func TestLostConnectionIsReopenedAndReported(t *testing.T) {
	events := make(chan string, 9)
	k := keep(t, serve(t).plan(time.Minute, events))
	if err := k.Do(t.Context(), saying("end")); !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("%v", err)
	}
	must.Do(t, k.Await(t.Context()))
	if err := k.Do(t.Context(), saying("a")); err != nil {
		t.Error(err)
	}
	if e := <-events; e != "reconnect of producer 7" {
		t.Errorf("told: %s", e)
	}
}

func TestDisconnectedDoFailsWhileAskWaits(t *testing.T) {
	s := serve(t)
	p := s.plan(time.Minute, make(chan string, 9))
	let := make(chan struct{})
	dial, first := p.Connect, true
	p.Connect = func(ctx context.Context, set *sockets.Set) (*client, error) {
		if first {
			first = false
			return dial(ctx, set)
		}
		<-let
		return dial(ctx, set)
	}
	k := keep(t, p)
	_ = k.Do(t.Context(), saying("end"))
	if err := k.Do(t.Context(), saying("a")); !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("Do without a connection: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := k.Ask(short, saying("a")); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("Ask until its context ends: %v", err)
	}
	asked := make(chan error)
	go func() { asked <- k.Ask(t.Context(), saying("a")) }()
	close(let)
	if err := <-asked; err != nil {
		t.Errorf("Ask: %v", err)
	}
	// A connection broke while idle: the request is repeated.
	s.mu.Lock()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	if err := k.Ask(t.Context(), saying("a")); err != nil {
		t.Errorf("Ask on a connection that had broken: %v", err)
	}
}

func TestASilentCallEnds(t *testing.T) {
	s := serve(t)
	t.Run("by its limit", func(t *testing.T) {
		k := keep(t, s.plan(50*time.Millisecond, make(chan string, 9)))
		if err := k.Do(t.Context(), saying("quiet")); !errors.Is(err, driver.ErrTimeout) {
			t.Errorf("%v", err)
		}
	})
	t.Run("by its context", func(t *testing.T) {
		k := keep(t, s.plan(time.Minute, make(chan string, 9)))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		if err := k.Do(ctx, saying("quiet")); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if err := k.Do(ctx, saying("a")); !errors.Is(err, context.Canceled) {
			t.Errorf("once more: %v", err)
		}
	})
	t.Run("by Close", func(t *testing.T) {
		k := keep(t, s.plan(time.Minute, make(chan string, 9)))
		time.AfterFunc(10*time.Millisecond, k.Close)
		if err := k.Do(t.Context(), saying("quiet")); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%v", err)
		}
		if err := k.Do(t.Context(), saying("a")); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if err := k.Ask(t.Context(), saying("a")); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Ask after Close: %v", err)
		}
	})
}

func TestCanceledContextDoesNotAffectLaterCalls(t *testing.T) {
	events := make(chan string, 9)
	k := keep(t, serve(t).plan(time.Minute, events))
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		must.Do(t, k.Do(ctx, saying("a")))
		cancel()
		must.Do(t, k.Do(t.Context(), saying("b")))
	}
	if len(events) > 0 {
		t.Errorf("told: %s", <-events)
	}
}

func TestPermanentConnectErrorGivesUp(t *testing.T) {
	p := serve(t).plan(time.Minute, make(chan string, 9))
	dial, first := p.Connect, true
	p.Connect = func(ctx context.Context, set *sockets.Set) (*client, error) {
		if first {
			first = false
			return dial(ctx, set)
		}
		return nil, fmt.Errorf("not you: %w", driver.ErrAuth)
	}
	k := keep(t, p)
	_ = k.Do(t.Context(), saying("end"))
	if err := k.Await(t.Context()); !errors.Is(err, driver.ErrAuth) || !failure.Hopeless(err) {
		t.Errorf("%v", err)
	}
}

func TestAbsentServerIsUnreachable(t *testing.T) {
	s := serve(t)
	p := s.plan(time.Minute, nil)
	s.close()
	if _, err := Open(t.Context(), p); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}
