package selftest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/internal/wire"
	"github.com/weirmq/weir/measure"
)

// A client and a server, each a process of its own, talk over loopback TCP, one message at a time. The
// server takes its time for each answer, which it records; then one of them is stopped now and then. So
// it is known whose time a message took.
const (
	kernelRun    = 0x6b65726e
	kernelServed = 2 * time.Millisecond // the server's time for an answer
	kernelFreeze = 400 * time.Millisecond
	kernelShare  = 0.2 // of the truth that may be missing: what else a message did that met a freeze
	kernelQuiet  = 2 * time.Second
)

// kernelFreezes is how often a process is stopped at scale 1.
const kernelFreezes = 8

// A served is what a server says at its end: how long it took for its answers.
type served struct {
	Answers uint64 `json:"answers"`
	P50     int64  `json:"p50_ns"`
}

// An asked is what a client says at its end.
type asked struct {
	P50    int64 `json:"p50_ns"` // of round trips
	Report *wire.Report
}

// KernelMain is the main function of the check's two processes: "server", or "client" and an address. The
// server prints its address first; both end with stdin, and print what they saw.
func KernelMain(args []string, in io.Reader, out io.Writer) error {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	}()
	switch {
	case len(args) == 1 && args[0] == "server":
		return kernelServe(ended, out)
	case len(args) == 2 && args[0] == "client":
		return kernelAsk(ended, args[1], out)
	}
	return errors.New("internal instants: wants server, or client and an address")
}

func kernelServe(ended <-chan struct{}, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	fmt.Fprintln(out, l.Addr())
	c, err := l.Accept()
	if err != nil {
		return fmt.Errorf("accepting: %w", err)
	}
	clock, took := pace.NewClock(), measure.NewHistogram()
	b := make([]byte, size)
	for {
		if _, err := io.ReadFull(c, b); err != nil {
			break // the client has ended
		}
		from := clock.Now()
		time.Sleep(kernelServed)
		took.Record(clock.Now() - from)
		if _, err := c.Write([]byte("ok")); err != nil {
			break
		}
	}
	<-ended
	var all measure.Counts
	took.Read(&all)
	return json.NewEncoder(out).Encode(served{Answers: all.Total(), P50: all.Percentile(50)})
}

func kernelAsk(ended <-chan struct{}, at string, out io.Writer) error {
	r, err := wire.Open(nil)
	if err != nil {
		return err
	}
	c, err := net.Dial("tcp", at)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	clock := pace.NewClock()
	r.Start(wire.Config{Run: kernelRun, EpochNS: clock.Epoch().MonotonicNS, Now: clock.Now, To: math.MaxInt64, Share: 1})
	trips := measure.NewHistogram()
	body, answer := make([]byte, size), make([]byte, 2)
	sum := stamp.Checksum(body[stamp.Size:])
	for seq := uint64(0); ; seq++ {
		select {
		case <-ended:
			var all measure.Counts
			trips.Read(&all)
			return json.NewEncoder(out).Encode(asked{P50: all.Percentile(50), Report: r.Stop()})
		default:
		}
		now := clock.Now()
		m := wire.Message{Stream: 1, Seq: seq, Bytes: size, Due: now, Start: now}
		stamp.Put(body, &stamp.Stamp{Run: kernelRun, Stream: 1, Seq: seq, Due: now, Start: now, CRC: sum})
		sampled := r.Handed(now)
		if _, err := c.Write(body); err != nil {
			return fmt.Errorf("asking: %w", err)
		}
		if _, err := io.ReadFull(c, answer); err != nil {
			return fmt.Errorf("reading an answer: %w", err)
		}
		m.End = clock.Now()
		trips.Record(m.End - now)
		if sampled {
			r.Confirmed(&m)
		}
	}
}

// A kernelActor is one of the two processes.
type kernelActor struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

func startKernelActor(ctx context.Context, self string, args ...string) (*kernelActor, error) {
	a := &kernelActor{cmd: exec.CommandContext(ctx, self, append([]string{"internal", "instants"}, args...)...)}
	a.cmd.Stderr = os.Stderr
	in, err := a.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a.in, a.out = in, bufio.NewReader(out)
	return a, a.cmd.Start()
}

// end ends the process and reads what it says.
func (a *kernelActor) end(says any) error {
	err := errors.Join(a.in.Close(), json.NewDecoder(a.out).Decode(says))
	return errors.Join(err, a.cmd.Wait())
}

// kernelConversation lets both talk while during lasts.
func kernelConversation(ctx context.Context, self string, during func(server, client *os.Process) error) (a asked, s served, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := startKernelActor(ctx, self, "server")
	if err != nil {
		return a, s, err
	}
	at, err := server.out.ReadString('\n')
	if err != nil {
		return a, s, err
	}
	client, err := startKernelActor(ctx, self, "client", at[:len(at)-1])
	if err != nil {
		return a, s, err
	}
	if err := during(server.cmd.Process, client.cmd.Process); err != nil {
		return a, s, err
	}
	err = client.end(&a)
	return a, s, errors.Join(err, server.end(&s))
}

// kernelInstants compares what kernel instants say of where the time of messages went with whose it was.
func kernelInstants(ctx context.Context, o Options) (Check, error) {
	c := Check{
		Name: "kernel instants", Attempts: 1,
		What: fmt.Sprintf("a server that takes %v for an answer, then is stopped for %v at a time, then the client is: whose time it was", kernelServed, kernelFreeze),
	}
	if err := wire.Check(); err != nil {
		return notRun(c.Name, c.What, err), nil
	}
	if o.Self == "" {
		return notRun(c.Name, c.What, errors.New("weir's own program is not known")), nil
	}
	a, s, err := kernelConversation(ctx, o.Self, func(_, _ *os.Process) error {
		return sleep(ctx, time.Duration(o.Scale*float64(kernelQuiet)))
	})
	if err != nil {
		return c, fmt.Errorf("reading kernel instants: %w", err)
	}
	c.Samples += a.Report.Send.Known()
	middle := Row{
		What: "network and system p50", Unit: Nanoseconds, Want: s.P50, Got: a.Report.Send.System.Percentile(50),
		Tolerance: int64(allowed * float64(s.P50)), Host: max(0, a.P50-s.P50), Waiting: -1,
	}
	middle.OK = middle.Got >= middle.Want-middle.Tolerance && middle.Got <= middle.Want+middle.Tolerance+middle.Host
	middle.Says = middle.Host <= middle.Want/2
	c.Rows = append(c.Rows, middle)
	for _, frozen := range []struct {
		what   string
		client bool
		part   func(*wire.Level) int64
	}{
		{"of a stopped server: network and system, mean", false, func(l *wire.Level) int64 { return l.System }},
		{"of a stopped client: kernel and client, receiving, mean", true, func(l *wire.Level) int64 { return l.HostIn }},
	} {
		a, _, err := kernelConversation(ctx, o.Self, func(server, client *os.Process) error {
			p := server
			if frozen.client {
				p = client
			}
			for range max(3, int(kernelFreezes*o.Scale)) {
				if err := sleep(ctx, kernelFreeze/2); err != nil {
					return err
				}
				err := p.Signal(syscall.SIGSTOP)
				err = errors.Join(err, sleep(ctx, kernelFreeze), p.Signal(syscall.SIGCONT))
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return c, fmt.Errorf("reading kernel instants of a stopped process: %w", err)
		}
		c.Rows = append(c.Rows, longest(a.Report, frozen.what, frozen.part))
		c.Samples += a.Report.Send.Known()
	}
	c.judge()
	return c, nil
}

// longest compares a part of the messages that met a freeze with all of their time.
func longest(r *wire.Report, what string, part func(*wire.Level) int64) Row {
	var known, total, got int64
	for i := range r.Send.Levels {
		if l := &r.Send.Levels[i]; l.Bucket >= wire.Bucket(int64(kernelFreeze)*3/4) {
			known, total, got = known+int64(l.Known), total+l.TotalNS(), got+part(l)
		}
	}
	n := max(1, known)
	row := Row{What: what, Unit: Nanoseconds, Want: total / n, Got: got / n, Waiting: -1, Says: known >= 2}
	row.Tolerance = int64(kernelShare * float64(row.Want))
	row.OK = row.Got >= row.Want-row.Tolerance
	return row
}
