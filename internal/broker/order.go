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

// An Order is something that is done to a server of a running system.
type Order string

// The orders. Each is undone by another, or when the system ends.
const (
	OrderKill     Order = "kill"     // SIGKILL, to the server and all that it started
	OrderStart    Order = "start"    // starts servers that were killed, with the same folder and ports
	OrderStop     Order = "stop"     // SIGSTOP: they stay, and do nothing
	OrderContinue Order = "continue" // SIGCONT, of those that were stopped
	OrderRestart  Order = "restart"  // SIGTERM, or SIGKILL after the recipe's grace, then start
	OrderFill     Order = "fill"     // their own disks have no room left, as long as it lasts
	OrderEmpty    Order = "empty"    // of those that were filled
	OrderSlow     Order = "slow"     // flushes and reads of their disks take longer, by a time
	OrderQuicken  Order = "quicken"  // of those that were made slow
	OrderClock    Order = "clock"    // their wall clocks step, by a time
	OrderCorrect  Order = "correct"  // of those that were stepped: back to the host's clock

	orderAgain Order = "again" // restarts those, or all, and waits until the system answers; see Restart
)

const (
	ordersFile = "orders" // a FIFO in the system's folder: a line is an order
	orderWord  = "order " // begins a line on stdout that is an orderDone
	orderBytes = 512      // a longer line is not an order; below what a FIFO takes whole
	mostOrders = 16       // that wait
)

// ErrNoOrders: the system takes no orders, because weir embeds it.
var ErrNoOrders = errors.New("an embedded system takes no orders for single servers")

// order is a line of the FIFO.
type order struct {
	ID      uint64   `json:"id"`
	Do      Order    `json:"do"`
	Servers []string `json:"servers"` // names of processes

	By time.Duration `json:"by,omitempty"` // of OrderSlow and OrderClock
}

// A Span is how long an order took, on the host's monotonic clock: what failed in a restart
// failed after its first signal, although the processes run again only at its end.
type Span struct {
	BeganNS int64 `json:"began_ns"` // just before the first signal, or the first change
	EndedNS int64 `json:"ended_ns"` // when it was carried out: with start, continue and restart the processes ran again
}

// orderDone answers an order.
type orderDone struct {
	ID uint64 `json:"id"`
	Span
	Error string `json:"error,omitempty"`
}

// Order does something to servers, by the names of their processes ("server-2"), and
// returns when. by is that of OrderSlow and OrderClock. It does not wait until they answer. An
// order that the state of a server rules out (stop what is gone) is an error, and nothing is
// done. One goroutine at a time calls it, and neither Restart nor Stop meanwhile.
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
			case d.ID != r.ordered: // of an earlier one that was not waited for
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
	// Not blocking: a supervisor that is gone reads nothing.
	f, err := os.OpenFile(filepath.Join(r.Dir, ordersFile), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// takeOrders makes the FIFO and returns the orders that come by it, and what ends it.
func takeOrders(dir string) (<-chan order, func(), error) {
	path := filepath.Join(dir, ordersFile)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, nil, fmt.Errorf("making %s: %w", path, err)
	}
	// For reading and writing, so that it does not end with an order's writer; not
	// blocking, so that closing it ends the reading.
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
			default: // its giver does not wait for an answer, or it would not have given so many
			}
		}
	}()
	return orders, func() { _ = f.Close() }, nil
}

// obey carries out an order and answers it. It fails where the system is gone then.
func (s *supervisor) obey(ctx context.Context, o order, stdout io.Writer) error {
	if o.Do == orderAgain { // what it announces is the answer
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

// those returns the servers of these names, which all run.
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

// kill ends servers with all that they started, and waits until they are gone.
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

// end asks servers to end, and kills those that do not in the recipe's grace.
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

// gone waits until servers are gone, and tells of each.
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

// signal stops servers with all that they started, or has them go on.
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

// unitsOf returns the units of these names, of servers that run or not.
func (s *supervisor) unitsOf(names []string) (all []*unit) {
	for k := range s.layout.units {
		if u := &s.layout.units[k]; slices.Contains(names, u.name) {
			all = append(all, u)
		}
	}
	return all
}

// revive starts servers that are gone, in the recipe's order, and tells of each.
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
