package exec

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/guard"
)

const (
	protocol    = "1"
	stopLimit   = 2 * time.Second // for a child to exit by itself
	killLimit   = 30 * time.Second
	goneLimit   = time.Second   // between the end of a child's connection and its exit
	outputLimit = goneLimit / 4 // between a child's exit and the end of its output
	mostGreeted = 64            // connections that have not identified themselves
	mostAsked   = 1024          // unanswered requests
	mostOutput  = 4 << 10       // bytes of the child's output that are kept, from its end
	mostPath    = 100           // bytes of a socket path that all systems accept
)

// A peer is one of the child's connections.
type peer struct {
	net.Conn
	in *frames
}

// A child is the process with its connections to the socket.
type child struct {
	limit    time.Duration
	process  *guard.Process
	listener net.Listener
	output   *output
	read     chan struct{} // closed when the output has been read completely
	hello    fields        // what the child says about itself
	all      sync.WaitGroup

	mu       sync.Mutex
	control  *peer
	asked    map[uint32]chan fields
	last     uint32                // number of the last request
	expected map[string]chan *peer // by channel, until the child connects
	open     map[*peer]bool
	err      error         // why the child is gone; valid after gone
	gone     chan struct{} // closed when the child is gone
}

// start starts the command and waits until the child has connected, within ctx and limit.
func start(ctx context.Context, command []string, startLimit, limit time.Duration) (_ *child, err error) {
	if len(command) == 0 || command[0] == "" {
		return nil, &driver.OptionError{Name: "command", Err: errors.New("is empty (a program and its arguments)")}
	}
	if _, err := osexec.LookPath(command[0]); err != nil {
		return nil, &driver.OptionError{Name: "command", Err: err}
	}
	dir, err := os.MkdirTemp("", "weir-exec-") // accessible only to its user
	if err != nil {
		return nil, fmt.Errorf("making a folder for the socket: %w", err)
	}
	path := filepath.Join(dir, "socket")
	if len(path) > mostPath {
		_ = os.Remove(dir)
		return nil, fmt.Errorf("the path of a socket, %s, is too long: set TMPDIR to a shorter folder", path)
	}
	first := make(chan *peer, 1)
	c := &child{
		limit: limit, asked: map[uint32]chan fields{}, expected: map[string]chan *peer{"": first},
		open: map[*peer]bool{}, gone: make(chan struct{}), output: &output{}, read: make(chan struct{}),
	}
	if c.listener, err = net.Listen("unix", path); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("listening at a socket: %w", err)
	}
	if err := c.launch(ctx, dir, path, command); err != nil {
		_ = c.listener.Close()
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("starting %s: %w", command[0], err)
	}
	c.all.Go(c.accept)
	c.all.Go(c.watch)
	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	select {
	case control := <-first:
		if v := c.hello.get("protocol"); v != protocol {
			err = fmt.Errorf("the child speaks protocol %q, weir speaks %s: %w", v, protocol, driver.ErrUnsupported)
			break
		}
		c.mu.Lock()
		c.control = control
		c.mu.Unlock()
		c.all.Go(c.answers)
		return c, nil
	case <-c.gone:
		err = c.err
	case <-timer.C:
		err = fmt.Errorf("the child has not connected to WEIR_SOCKET within %v (option start-limit)%s: %w",
			startLimit, c.output.said(), driver.ErrUnreachable)
	case <-ctx.Done():
		err = fmt.Errorf("waiting for the child to connect: %w: %w", driver.ErrUnreachable, ctx.Err())
	}
	return nil, errors.Join(err, c.stop(context.WithoutCancel(ctx)))
}

// launch starts the process in weir's own working directory, so that the command may contain
// relative paths. Its guard gets the socket's folder, and removes it.
func (c *child) launch(ctx context.Context, dir, path string, command []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	c.process, err = guard.Start(ctx, self, guard.Spec{
		Args: append([]string{"/bin/sh", "-c", `cd "$0" && exec "$@"`, here}, command...),
		Env:  append(os.Environ(), "WEIR_SOCKET="+path, "WEIR_PROTOCOL="+protocol),
		Dir:  dir, RemoveDir: true, Stdout: w, Stderr: w, Grace: stopLimit,
	})
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return err
	}
	c.all.Go(func() {
		_, _ = io.Copy(c.output, r)
		_ = r.Close()
		close(c.read)
	})
	return nil
}

// accept accepts the child's connections until the listener is closed.
func (c *child) accept() {
	room := make(chan struct{}, mostGreeted)
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		room <- struct{}{}
		c.all.Go(func() {
			c.greet(&peer{conn, newFrames(conn)})
			<-room
		})
	}
}

// greet reads which channel a connection is for. It closes an unidentified or unexpected
// connection.
func (c *child) greet(conn *peer) {
	c.mu.Lock()
	c.open[conn] = true
	c.mu.Unlock()
	late := time.AfterFunc(c.limit, func() { _ = conn.Close() })
	k, body, err := conn.in.next()
	if !late.Stop() || err != nil || k != hello {
		c.drop(conn)
		return
	}
	cur := cursor{b: body}
	f := readFields(&cur)
	c.mu.Lock()
	to, wanted := c.expected[f.get("channel")]
	if wanted = wanted && cur.err(k) == nil; wanted {
		delete(c.expected, f.get("channel"))
		if f.get("channel") == "" {
			c.hello = f
		}
	}
	c.mu.Unlock()
	if !wanted {
		c.drop(conn)
		return
	}
	to <- conn
}

// drop closes a connection.
func (c *child) drop(conn *peer) {
	_ = conn.Close()
	c.mu.Lock()
	delete(c.open, conn)
	c.mu.Unlock()
}

// watch waits for the child to exit, and then closes its connections. Output may arrive after the
// exit, and another process may keep it open, so watch waits for it at most outputLimit.
func (c *child) watch() {
	<-c.process.Done()
	timer := time.NewTimer(outputLimit)
	defer timer.Stop()
	select {
	case <-c.read:
	case <-timer.C:
	}
	why := "exit code 0"
	var exit *guard.ExitError
	switch err := c.process.Err(); {
	case errors.As(err, &exit):
		why = fmt.Sprintf("exit code %d", exit.Code)
	case err != nil:
		why = err.Error()
	}
	c.fail(fmt.Errorf("the child has ended: %s%s: %w", why, c.output.said(), driver.ErrUnreachable))
}

// fail makes the child unusable.
func (c *child) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.gone:
		return
	default:
	}
	c.err = err
	close(c.gone)
	_ = c.listener.Close()
	for conn := range c.open {
		_ = conn.Close()
	}
}

// why returns why a connection has ended: the child's error if the child is gone.
func (c *child) why(err error) error {
	timer := time.NewTimer(goneLimit)
	defer timer.Stop()
	select {
	case <-c.gone:
		return c.err
	case <-timer.C:
	}
	switch {
	case errors.Is(err, errMalformed):
		return err
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the child has closed the connection: %w", driver.ErrDisconnected)
	}
	return fmt.Errorf("%w: %w", driver.ErrDisconnected, err)
}

// stop asks the child to exit, and kills it after 2 s. It returns when all its processes and the
// socket are gone.
func (c *child) stop(ctx context.Context) error {
	c.mu.Lock()
	if c.control != nil {
		_ = c.control.Close()
	}
	c.mu.Unlock()
	_ = c.listener.Close()
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-c.process.Done():
	case <-timer.C:
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killLimit)
	defer cancel()
	err := c.process.Stop(ctx)
	var exit *guard.ExitError
	if errors.As(err, &exit) {
		err = nil // already reported by its last connections
	}
	c.fail(driver.ErrClosed)
	select {
	case <-c.process.Done():
		c.all.Wait()
	default: // err has the reason
	}
	return err
}

// answers reads the answers on the control connection.
func (c *child) answers() {
	for {
		k, body, err := c.control.in.next()
		if err == nil && k != answer {
			err = fmt.Errorf("%w: kind %d on the control connection", errMalformed, k)
		}
		cur := cursor{b: body}
		n := uint32(cur.number(4))
		f := readFields(&cur)
		if err == nil {
			err = cur.err(k)
		}
		if err != nil {
			if why := c.why(err); why != nil {
				c.fail(fmt.Errorf("control connection: %w", why))
			}
			return
		}
		c.mu.Lock()
		to := c.asked[n]
		delete(c.asked, n)
		c.mu.Unlock()
		if to != nil { // otherwise weir has given up waiting
			to <- f
		}
	}
}

// ask sends a request and waits for the answer, within ctx and the option timeout. It returns an
// error named by the child.
func (c *child) ask(ctx context.Context, what string, f fields) (fields, error) {
	to := make(chan fields, 1)
	f["ask"] = []string{what}
	c.mu.Lock()
	if len(c.asked) == mostAsked {
		c.mu.Unlock()
		return nil, fmt.Errorf("%s: the child has %d requests to answer: %w", what, mostAsked, driver.ErrUnreachable)
	}
	c.last++
	n := c.last
	c.asked[n] = to
	c.mu.Unlock()
	b := f.append(binary.BigEndian.AppendUint32(begin(nil, ask), n))
	finish(b, 0)
	defer func() {
		c.mu.Lock()
		delete(c.asked, n)
		c.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	sent := make(chan error, 1)
	go func() { // a child that does not read blocks this until the connection ends
		_, err := c.control.Write(b)
		sent <- err
	}()
	for {
		select {
		case err := <-sent:
			if err == nil {
				sent = nil
				continue
			}
			return nil, fmt.Errorf("%s: %w", what, c.why(err))
		case got := <-to:
			return got, got.err()
		case <-c.gone:
			return nil, c.err
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: the child does not answer: %w: %w", what, driver.ErrUnreachable, ctx.Err())
		}
	}
}

// channel makes the child open a producer or a consumer, and returns its connection and the answer.
func (c *child) channel(ctx context.Context, what string, f fields) (*peer, fields, error) {
	to := make(chan *peer, 1)
	c.mu.Lock()
	c.last++
	name := strconv.FormatUint(uint64(c.last), 10)
	c.expected[name] = to
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.expected, name)
		c.mu.Unlock()
		select {
		case late := <-to:
			c.drop(late)
		default:
		}
	}()
	f["channel"] = []string{name}
	got, err := c.ask(ctx, what, f)
	if err != nil {
		return nil, nil, err
	}
	timer := time.NewTimer(c.limit)
	defer timer.Stop()
	select {
	case conn := <-to:
		return conn, got, nil
	case <-c.gone:
		return nil, nil, c.err
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, nil, fmt.Errorf("%s: the child has not connected for channel %s: %w", what, name, driver.ErrUnreachable)
}

// An output keeps the last part of what the child writes to stdout and stderr.
type output struct {
	mu   sync.Mutex
	text []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	if n := len(o.text) - mostOutput; n > 0 {
		o.text = append(o.text[:0], o.text[n:]...)
	}
	return len(p), nil
}

// said returns the last lines, for an error.
func (o *output) said() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	const lines = 3
	all := strings.FieldsFunc(string(o.text), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(all) == 0 {
		return ""
	}
	return "; its last output: " + strings.Join(all[max(0, len(all)-lines):], " | ")
}
