package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/result"
)

// A System is what faults happen to.
type System struct {
	Servers []Server
	// Order does something to processes and returns when, on the clock of Now: "kill",
	// "stop" and "restart" begin a fault, "start" ends a kill and "continue" a stop.
	Order func(ctx context.Context, do string, processes ...string) (at int64, err error)
	// Leaders returns the addresses of the servers that lead parts of the run's
	// destinations; nil where the driver cannot tell.
	Leaders func(ctx context.Context) ([]string, error)
	// Now returns the time since the epoch of the run, ns.
	Now func() int64
	// Tell takes each step for the events of the run.
	Tell func(at int64, text string)
}

const (
	leadersLimit = 5 * time.Second        // asking who leads; a system between two leaders is asked again
	leadersPause = 200 * time.Millisecond // between two such questions
	orderLimit   = 2 * time.Minute        // a server may take long to start
)

// Conduct carries out faults until ctx ends, and returns what was done, in order of
// time. from and window are the measured window's beginning, since the epoch, and its
// length, 0 where it is not known; a fault that is due after its end does not happen, but
// one that has begun is undone in its time. It returns when the last is.
func Conduct(ctx context.Context, s System, faults []Fault, from, window time.Duration) []result.Fault {
	var done []result.Fault
	steps, down := plan(faults, from, window), map[string]Verb{}
	for len(steps) > 0 && ctx.Err() == nil {
		next := steps[0]
		steps = steps[1:]
		if !Until(ctx, s.Now, next.at) {
			break
		}
		if next.undo {
			undo(ctx, s, next.fault, &done[next.which])
			for _, p := range done[next.which].Processes {
				delete(down, p)
			}
			continue
		}
		f := begin(ctx, s, next, down)
		done = append(done, f)
		if f.Error == "" && next.fault.Do != Restart {
			for _, p := range f.Processes {
				down[p] = next.fault.Do
			}
		}
		if f.Error == "" && next.fault.For > 0 {
			back := step{at: f.BeganNS + int64(next.fault.For), fault: next.fault, undo: true, which: len(done) - 1}
			i, _ := slices.BinarySearchFunc(steps, back, func(a, b step) int {
				if a.at <= b.at {
					return -1
				}
				return 1
			})
			steps = slices.Insert(steps, i, back)
		}
	}
	return done
}

// Until waits for an instant on the clock of now, ns; false: ctx ended before.
func Until(ctx context.Context, now func() int64, at int64) bool {
	for {
		left := time.Duration(at - now())
		if left <= 0 {
			return ctx.Err() == nil
		}
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return false
		}
	}
}

// begin does what a step says. down has the processes that earlier faults killed or
// stopped.
func begin(ctx context.Context, s System, next step, down map[string]Verb) result.Fault {
	f := result.Fault{Do: string(next.fault.Do), To: next.fault.To, DueNS: next.at}
	ctx, cancel := context.WithTimeout(ctx, orderLimit)
	defer cancel()
	processes, err := choose(ctx, s, next.fault.To, down)
	if err == nil {
		f.Processes = processes
		f.BeganNS, err = s.Order(ctx, f.Do, processes...)
	}
	if err != nil {
		f.BeganNS, f.Error = s.Now(), err.Error()
		s.Tell(f.BeganNS, fmt.Sprintf("%s failed: %v", next.fault, err))
		return f
	}
	text := f.Do + " " + strings.Join(processes, ", ")
	if next.fault.Seeks() {
		text += " (" + next.fault.To + ")"
	}
	if next.fault.Do == Restart { // the order ended when the process ran again
		back := s.Now()
		f.UndoneNS = &back
	}
	s.Tell(f.BeganNS, text)
	return f
}

// undo ends a fault.
func undo(ctx context.Context, s System, x Fault, f *result.Fault) {
	do := "start"
	if x.Do == Stop {
		do = "continue"
	}
	ctx, cancel := context.WithTimeout(ctx, orderLimit)
	defer cancel()
	at, err := s.Order(ctx, do, f.Processes...)
	if err != nil {
		f.Error = err.Error()
		s.Tell(s.Now(), fmt.Sprintf("%s failed: %v", do, err))
		return
	}
	f.UndoneNS = &at
	s.Tell(at, do+" "+strings.Join(f.Processes, ", "))
}

// choose returns the processes of a target. All are those that run, and neither leads nor
// follows what is down.
func choose(ctx context.Context, s System, target string, down map[string]Verb) ([]string, error) {
	up := slices.DeleteFunc(slices.Clone(s.Servers), func(x Server) bool {
		if target == All {
			return down[x.Name] == Kill
		}
		stands, _ := perNode(s.Servers, x.Node)
		return down[stands.Name] != ""
	})
	switch {
	case !(Fault{To: target}).Seeks() && target != All:
		return fixed(target, s.Servers)
	case len(up) == 0:
		return nil, errors.New("no server runs")
	case target == All:
		return fixed(All, up)
	}
	ctx, cancel := context.WithTimeout(ctx, leadersLimit)
	defer cancel()
	for {
		leaders, err := s.Leaders(ctx)
		if err == nil {
			var found []string
			if found, err = led(target, up, leaders); err == nil {
				return found, nil
			}
		}
		select {
		case <-time.After(leadersPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("asking which node leads: %w", err)
		}
	}
}
