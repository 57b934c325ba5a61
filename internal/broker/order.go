//go:build unix

package broker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// An Order is an action on a server of a running system.
type Order string

// The orders. Each is undone by another one, or when the system ends.
const (
	OrderKill     Order = "kill"     // SIGKILL to the server and all its children
	OrderStart    Order = "start"    // starts killed servers with the same folder and ports
	OrderStop     Order = "stop"     // SIGSTOP: they stay but do nothing
	OrderContinue Order = "continue" // SIGCONT for stopped servers
	OrderRestart  Order = "restart"  // SIGTERM, or SIGKILL after the recipe's grace, then start
	OrderFill     Order = "fill"     // keeps their own disks full
	OrderEmpty    Order = "empty"    // undoes OrderFill
	OrderSlow     Order = "slow"     // delays flushes and reads of their disks by a duration
	OrderQuicken  Order = "quicken"  // undoes OrderSlow
	OrderClock    Order = "clock"    // steps their wall clocks by a duration
	OrderCorrect  Order = "correct"  // undoes OrderClock: back to the host's clock

	orderAgain Order = "again" // restarts servers, or all, and waits until the system answers; see Restart
)

const (
	ordersFile = "orders" // FIFO in the system's folder; each line is an order
	orderWord  = "order " // prefix of a stdout line that holds an orderDone
	orderBytes = 512      // longest order; less than the FIFO's atomic write size
	mostOrders = 16       // that can be queued
)

// ErrNoOrders is returned for an embedded system, which takes no orders.
var ErrNoOrders = errors.New("an embedded system takes no orders for single servers")

// order is a line of the FIFO.
type order struct {
	ID      uint64   `json:"id"`
	Do      Order    `json:"do"`
	Servers []string `json:"servers"` // process names

	By time.Duration `json:"by,omitempty"` // for OrderSlow and OrderClock
}

// A Span is when an order was carried out, on the host's monotonic clock. For a restart, failures
// start with the first signal, although the processes run again only at the end.
type Span struct {
	BeganNS int64 `json:"began_ns"` // just before the first signal or change
	EndedNS int64 `json:"ended_ns"` // when it was done: after start, continue and restart the processes run again
}

// orderDone is the answer to an order.
type orderDone struct {
	ID uint64 `json:"id"`
	Span
	Error string `json:"error,omitempty"`
}

// Order acts on servers, given by process name ("server-2"), and returns when it was done. by applies
// to OrderSlow and OrderClock. It does not wait until the servers answer. An order that does not fit a
// server's state, such as stopping a server that is gone, returns an error and changes nothing. Order
// must not be called concurrently with itself, Restart or Stop.
func (r *Running) Order(ctx context.Context, do Order, by time.Duration, servers ...string) (Span, error) {
	if r.Processes == nil {
		return Span{}, ErrNoOrders
	}
	if err := r.give(do, by, servers...); err != nil {
		return Span{}, fmt.Errorf("%s: %w", do, err)
	}
	for {
		select {
		case d := <-r.orders:
			switch {
			case d.ID != r.ordered: // answer to an earlier order that was abandoned
			case d.Error != "":
				return d.Span, fmt.Errorf("%s: %s", do, d.Error)
			default:
				return d.Span, nil
			}
		case <-r.process.Done():
			return Span{}, fmt.Errorf("%s: the system is gone", do)
		case <-ctx.Done():
			return Span{}, fmt.Errorf("%s: %w", do, ctx.Err())
		}
	}
}

// give sends an order.
func (r *Running) give(do Order, by time.Duration, servers ...string) error {
	r.ordered++
	line, err := json.Marshal(order{ID: r.ordered, Do: do, Servers: servers, By: by})
	if err != nil {
		return err
	}
	if len(line) >= orderBytes {
		return fmt.Errorf("the names of %d servers are too long for one order", len(servers))
	}
	// Non-blocking: a supervisor that is gone reads nothing.
	f, err := os.OpenFile(filepath.Join(r.Dir, ordersFile), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// takeOrders creates the FIFO and returns the channel of its orders, and a function that closes it.
func takeOrders(dir string) (<-chan order, func(), error) {
	path := filepath.Join(dir, ordersFile)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, nil, fmt.Errorf("making %s: %w", path, err)
	}
	// Opened for reading and writing, so that it does not reach EOF when a writer closes it; non-blocking,
	// so that closing it ends the read.
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	orders := make(chan order, mostOrders)
	go func() {
		s := bufio.NewScanner(f)
		s.Buffer(nil, orderBytes)
		for s.Scan() {
			var o order
			if json.Unmarshal(s.Bytes(), &o) != nil {
				continue
			}
			select {
			case orders <- o:
			default: // the sender does not wait for answers, or it would not have sent so many
			}
		}
	}()
	return orders, func() { _ = f.Close() }, nil
}

// obey carries out an order and answers it. It returns an error if the system is gone afterwards.
func (s *supervisor) obey(ctx context.Context, o order, stdout io.Writer) error {
	if o.Do == orderAgain { // the announcement is the answer
		return s.restart(ctx, o.Servers, stdout)
	}
	d := orderDone{ID: o.ID, Span: Span{BeganNS: hostNow()}}
	var err error
	switch o.Do {
	case OrderKill:
		d.BeganNS, err = s.kill(ctx, o.Servers, stdout)
	case OrderStop, OrderContinue:
		d.BeganNS, err = s.signal(o.Do, o.Servers)
	case OrderFill:
		err = s.fill(o.Servers)
	case OrderEmpty:
		err = s.empty(o.Servers)
	case OrderSlow:
		err = s.slowDown(o.Servers, o.By)
	case OrderQuicken:
		err = s.slowDown(o.Servers, 0)
	case OrderClock:
		err = s.step(o.Servers, o.By)
	case OrderCorrect:
		err = s.step(o.Servers, 0)
	case OrderStart:
		err = s.revive(ctx, o.Servers, stdout)
	case OrderRestart:
		if err = s.end(ctx, o.Servers, stdout); err == nil {
			err = s.revive(ctx, o.Servers, stdout)
		}
	default:
		err = fmt.Errorf("%q is not an order", o.Do)
	}
	d.EndedNS = hostNow()
	if err != nil {
		d.Error = err.Error()
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, orderWord+string(b))
	return err
}

// those returns the named servers, all of which must be running.
func (s *supervisor) those(names []string) ([]*server, error) {
	var all []*server
	for _, name := range names {
		i := slices.IndexFunc(s.servers, func(v *server) bool { return v.unit.name == name && !v.gone() })
		if i < 0 {
			return nil, fmt.Errorf("%s does not run", name)
		}
		all = append(all, s.servers[i])
	}
	return all, nil
}

// kill kills servers with their children, and waits until they are gone.
func (s *supervisor) kill(ctx context.Context, names []string, stdout io.Writer) (at int64, err error) {
	those, err := s.those(names)
	if err != nil {
		return 0, err
	}
	var pids []int
	for _, v := range those {
		v.meant = true
		pids = append(pids, descendants(v.cmd.Process.Pid)...)
	}
	at = hostNow()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return at, s.gone(ctx, those, "killed by a fault", stdout)
}

// end sends servers SIGTERM, and kills those that have not ended within the recipe's grace.
func (s *supervisor) end(ctx context.Context, names []string, stdout io.Writer) error {
	those, err := s.those(names)
	if err != nil {
		return err
	}
	for _, v := range those {
		v.meant = true
	}
	s.askToEnd(ctx, those)
	return s.gone(ctx, those, "ended by a fault", stdout)
}

// gone waits until servers are gone, and reports each.
func (s *supervisor) gone(ctx context.Context, those []*server, why string, stdout io.Writer) error {
	for _, v := range those {
		select {
		case <-v.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := v.tell(stdout, why); err != nil {
			return err
		}
	}
	return nil
}

// signal stops or continues servers with their children.
func (s *supervisor) signal(do Order, names []string) (at int64, err error) {
	those, err := s.those(names)
	if err != nil {
		return 0, err
	}
	signal := syscall.SIGSTOP
	if do == OrderContinue {
		signal = syscall.SIGCONT
	}
	at = hostNow()
	var errs []error
	for _, v := range those {
		for _, pid := range descendants(v.cmd.Process.Pid) {
			if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				errs = append(errs, fmt.Errorf("process %s: %w", strconv.Itoa(pid), err))
			}
		}
	}
	return at, errors.Join(errs...)
}

// unitsOf returns the units of the given names, whether their servers run or not.
func (s *supervisor) unitsOf(names []string) (all []*unit) {
	for k := range s.layout.units {
		if u := &s.layout.units[k]; slices.Contains(names, u.name) {
			all = append(all, u)
		}
	}
	return all
}

// revive starts servers that are gone, in the recipe's order, and reports each.
func (s *supervisor) revive(ctx context.Context, names []string, stdout io.Writer) error {
	limited, cancel := context.WithTimeout(ctx, s.plan.recipe.within())
	defer cancel()
	for _, name := range names {
		if !slices.ContainsFunc(s.servers, func(v *server) bool { return v.unit.name == name && v.gone() }) {
			return fmt.Errorf("%s runs", name)
		}
	}
	for k := range s.layout.units {
		u := &s.layout.units[k]
		if !slices.Contains(names, u.name) {
			continue
		}
		s.servers = slices.DeleteFunc(s.servers, func(v *server) bool { return v.unit == u })
		if err := s.spawn(u); err != nil {
			return err
		}
		now := s.servers[len(s.servers)-1]
		for _, c := range u.after {
			if err := s.command(limited, u, c); err != nil {
				return err
			}
		}
		if err := now.tell(stdout, ""); err != nil {
			return err
		}
	}
	return nil
}
