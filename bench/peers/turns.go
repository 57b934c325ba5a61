package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirmq/weir/result"
)

// passwordVariable is the environment variable with the started server's password.
const passwordVariable = "WEIR_PEERS_PASSWORD"

// Bounds of one turn.
const (
	turnLimit    = 3 * time.Minute
	receiverHead = time.Second // how long a receiver subscribes before the peer publishes
	outputShown  = 600         // bytes of a failed tool's output
)

// measure starts a system and takes the turns of its flows. With an error it also returns the rows of
// flows that were measured completely.
func (b *bench) measure(ctx context.Context, s *system, turns int) (rows []row, err error) {
	if err := b.start(ctx, s); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.stop(ctx)) }()
	for i := range s.flows {
		f := &s.flows[i]
		r := row{
			Name: f.name, System: s.title, Server: b.version, Tool: f.tool, What: f.what, Size: f.size, InFlight: f.inFlight,
			WeirCounts: f.weirIs, PeerCounts: f.peerIs, Different: f.different,
		}
		for _, args := range f.filling(b) {
			if _, err := b.output(ctx, args); err != nil {
				return rows, fmt.Errorf("%s, before its turns: %w", f.name, err)
			}
		}
		for turn := range turns {
			b.turn = turn + 1
			// ABBA order, so that drift affects both sides alike.
			order := []func(context.Context, *system, *flow, *row) error{b.weirTurn, b.peerTurn}
			if turn%2 == 1 {
				order[0], order[1] = order[1], order[0]
			}
			for _, take := range order {
				if err := take(ctx, s, f, &r); err != nil {
					return rows, fmt.Errorf("%s, turn %d: %w", f.name, turn+1, err)
				}
			}
			b.note(fmt.Sprintf("%s: turn %d: weir %.0f/s, peer %.0f/s", f.name, turn+1, r.Weir[turn], r.Peer[turn]))
		}
		r.Ratio = ratioOf(r.Weir, r.Peer)
		rows = append(rows, r)
	}
	return rows, nil
}

// filling returns what runs before the first turn.
func (f *flow) filling(b *bench) [][]string {
	if f.fill == nil {
		return nil
	}
	return f.fill(b)
}

// amount returns weir's arguments for how much a turn measures.
func (f *flow) amount() []string {
	if f.backlog > 0 {
		return []string{"--mode", result.ModeBacklog, "--warmup", "0s", "--messages", strconv.Itoa(f.backlog)}
	}
	return []string{"--warmup", "1s", "--measure", "3s"}
}

// weirTurn runs weir in a separate process, as users do.
func (b *bench) weirTurn(ctx context.Context, s *system, f *flow, r *row) error {
	dir, err := os.MkdirTemp("", "weir-peers-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := []string{
		b.self, "run", "--driver", s.driver, "--option", "address=" + b.address, "--size", fmt.Sprintf("%dB", f.size),
		"--rate", "max", "--json", "--quiet", "--out", filepath.Join(dir, "run"),
	}
	for _, name := range slices.Sorted(maps.Keys(b.running.Options)) {
		for _, value := range b.running.Options[name] {
			if name == "password" {
				value = "${env:" + passwordVariable + "}"
			}
			args = append(args, "--option", name+"="+value)
		}
	}
	args = append(append(args, f.amount()...), f.weir...)
	// Exit codes also report verdicts and losses: a run with a result counts.
	stdout, failed := b.output(ctx, args)
	x := &result.Result{}
	if err := json.Unmarshal(stdout, x); err != nil {
		return fmt.Errorf("weir printed no result: %w", errors.Join(failed, err))
	}
	v := f.figure(&x.Throughput)
	if !(v > 0) {
		return errors.Join(errors.New("weir measured nothing"), failed)
	}
	r.Guarantee = fmt.Sprintf("%s, stable %s", x.System.Guarantee, x.System.Stable)
	if r.Server == "" {
		r.Server = x.System.Server.Version
	}
	r.Weir = append(r.Weir, v)
	return nil
}

// peerTurn runs the vendor's tool.
func (b *bench) peerTurn(ctx context.Context, _ *system, f *flow, r *row) error {
	if f.before != nil {
		if _, err := b.output(ctx, f.before(b)); err != nil {
			return err
		}
	}
	var out []byte
	var err error
	if f.receiver == nil {
		out, err = b.output(ctx, f.peer(b))
	} else {
		out, err = b.beside(ctx, f)
	}
	if err != nil {
		return err
	}
	v, err := f.parse(string(out))
	if err != nil {
		return fmt.Errorf("%w: %s", err, tail(out))
	}
	r.Peer = append(r.Peer, v)
	return nil
}

// beside runs a peer with its receiver, and returns the receiver's output.
func (b *bench) beside(ctx context.Context, f *flow) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type ended struct {
		out []byte
		err error
	}
	receiver := make(chan ended, 1)
	go func() {
		out, err := b.output(ctx, f.receiver(b))
		receiver <- ended{out, err}
	}()
	select {
	case <-time.After(receiverHead):
	case e := <-receiver:
		return nil, errors.Join(errors.New("the receiver ended before anything was sent"), e.err)
	}
	_, err := b.output(ctx, f.peer(b))
	if err != nil {
		cancel()
	}
	e := <-receiver
	return e.out, errors.Join(err, e.err)
}

// output runs a program to completion, for at most turnLimit, and returns its output.
func (b *bench) output(ctx context.Context, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// A tool unpacked by weir's installer finds its libraries with these.
	cmd.Env = append(os.Environ(), b.server.Env...)
	if p := b.running.Options["password"]; len(p) > 0 { // weir does not accept it as an argument
		cmd.Env = append(cmd.Env, passwordVariable+"="+p[0])
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("%s: %w: %s", filepath.Base(args[0]), err, tail(append(stderr.Bytes(), stdout.Bytes()...)))
	}
	return stdout.Bytes(), nil
}

// tail returns the end of a program's output, on one line.
func tail(out []byte) string {
	return strings.Join(strings.Fields(string(out[max(0, len(out)-outputShown):])), " ")
}
