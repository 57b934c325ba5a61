package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/slowdisk"
	"github.com/weirmq/weir/internal/tcpreset"
	"github.com/weirmq/weir/result"
)

// A System is what faults are applied to.
type System struct {
	Servers []Server
	// Order acts on processes and returns when it was done, on the clock of Now. "kill", "stop",
	// "restart", "fill", "slow" and "clock" start a fault; "start" ends a kill, "continue" a stop, "empty"
	// a fill, "quicken" a slow and "correct" a clock. by is the added delay for slow, and the step for
	// clock.
	Order func(ctx context.Context, do string, by time.Duration, processes ...string) (result.Span, error)
	// Sever breaks connections of the given group of clients to processes, and returns how many; nil if
	// unsupported.
	Sever func(group tcpreset.Group, processes ...string) (n int, err error)
	// Part drops all packets between the nodes of each pair until the next call: it always receives all
	// pairs that are partitioned from then on. 0 stands for the clients.
	Part func(pairs [][2]int) error
	// Parting names, for results, the mechanism behind Part.
	Parting string
	// Leaders returns the addresses of the servers that lead partitions of the run's destinations; nil if
	// the driver cannot tell.
	Leaders func(ctx context.Context) ([]string, error)
	// Now returns the time since the run's epoch, in ns.
	Now func() int64
	// Tell receives each step, for the run's events.
	Tell func(at int64, text string)
	// Keep receives what is known of the n-th fault, counted from 0, before Tell receives its step; may be
	// nil.
	Keep func(n int, f result.Fault)
	// Agent is the name of this process, to which Order applies faults of Agents; "": not an agent.
	Agent string
	// Others reports whether Sever reaches only some of the clients, in which case finding no connection
	// is not an error.
	Others bool
}

const (
	leadersLimit = 5 * time.Second        // for finding the leader; retried while the system elects one
	leadersPause = 200 * time.Millisecond // between two attempts
	orderLimit   = 2 * time.Minute        // a server may take long to start
	severPause   = 20 * time.Millisecond  // roughly how long a connection made during a disconnect lives
)

// Conduct carries out faults until ctx ends, and returns what was done, in order of time. from and
// window are the start of the measured window, since the epoch, and its length, 0 if unknown. A fault
// due after the window's end does not happen, but one that has started is undone on time. Conduct
// returns after the last.
func Conduct(ctx context.Context, s System, faults []Fault, from, window time.Duration) []result.Fault {
	var done, parted []*begun
	steps, down := plan(faults, from, window), map[string]Verb{}
	for len(steps) > 0 && ctx.Err() == nil {
		next := steps[0]
		steps = steps[1:]
		if !Until(ctx, s.Now, next.at) {
			break
		}
		if next.undoes != nil {
			undo(ctx, s, next.undoes, slices.Index(done, next.undoes))
			for _, p := range next.undoes.Processes {
				delete(down, p)
			}
			continue
		}
		f := begin(ctx, s, next, len(done), down, &parted)
		done = append(done, f)
		if f.Error == "" && (next.fault.Do == Kill || next.fault.Do == Stop) {
			for _, p := range f.Processes {
				down[p] = next.fault.Do
			}
		}
		if f.Error == "" && next.fault.For > 0 {
			back := step{at: f.BeganNS + int64(next.fault.For), undoes: f}
			i, _ := slices.BinarySearchFunc(steps, back, func(a, b step) int {
				if a.at <= b.at {
					return -1
				}
				return 1
			})
			steps = slices.Insert(steps, i, back)
		}
	}
	var all []result.Fault
	for _, f := range done {
		if f.settle != nil {
			f.settle()
		}
		all = append(all, f.Fault)
	}
	return all
}

// begun is a fault that has been carried out.
type begun struct {
	result.Fault
	word   string                                    // the order that undoes it
	undo   func(context.Context) (at int64, e error) // undoes it and returns when that was done
	pairs  [][2]int                                  // pairs that a cut partitions
	settle func()                                    // ends background work and completes the Fault; may be nil
}

// Until waits for an instant on now's clock, in ns; it returns false if ctx ended first.
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

// begin carries out the n-th step. down has the processes that earlier faults killed or stopped,
// parted the cuts still in force.
func begin(ctx context.Context, s System, next step, n int, down map[string]Verb, parted *[]*begun) *begun {
	x := next.fault
	f := &begun{Fault: result.Fault{Do: string(x.Do), To: x.To, From: x.From, ByNS: int64(x.By), DueNS: next.at}}
	var over int64 // when it was done, if that takes time
	limited, cancel := context.WithTimeout(ctx, orderLimit)
	defer cancel()
	processes, err := choose(limited, s, x.Target(), down)
	f.BeganNS = s.Now() // the start, even if it fails or takes long
	if err == nil {
		f.Processes = processes
		switch x.Do {
		case Disconnect:
			err = f.disconnect(ctx, s, x)
		case Cut:
			err = f.cut(s, x, parted)
		default:
			over, err = f.order(limited, s, x)
		}
	}
	if err != nil {
		f.Error = err.Error()
		s.tell(n, f, s.Now(), fmt.Sprintf("%s failed: %v", x, err))
		return f
	}
	if x.Do == Restart { // the order ended when the process was running again
		f.UndoneNS = &over
	}
	s.tell(n, f, f.BeganNS, f.text(x))
	return f
}

// tell reports a step of the n-th fault.
func (s *System) tell(n int, f *begun, at int64, text string) {
	if s.Keep != nil {
		s.Keep(n, f.Fault)
	}
	s.Tell(at, text)
}

// text describes what was done.
func (f *begun) text(x Fault) string {
	text := f.Do + " "
	if x.Do == Disconnect {
		text += fmt.Sprintf("%s from ", x.To)
	}
	text += strings.Join(f.Processes, ", ")
	if x.Do == Cut {
		text += " from " + cmp.Or(x.From, All)
	}
	if x.By != 0 {
		text += " by " + quantity.Typed(x.By)
	}
	if x.Seeks() {
		text += " (" + x.Target() + ")"
	}
	if x.Do == Disconnect {
		text += ": " + f.broken()
	}
	return text
}

// broken describes how many connections a disconnect broke.
func (f *begun) broken() string {
	if f.Connections == 1 {
		return "1 connection"
	}
	return fmt.Sprintf("%d connections", f.Connections)
}

// order sends a fault to the process that started the servers, and returns when it was done.
func (f *begun) order(ctx context.Context, s System, x Fault) (over int64, err error) {
	switch x.Do {
	case Stop:
		f.word = "continue"
	case Fill:
		f.word = "empty"
	case Slow:
		f.word, f.Means = "quicken", slowdisk.Means
	case Clock:
		f.word, f.Means = "correct", clockstep.Means
	default:
		f.word = "start"
	}
	f.undo = func(ctx context.Context) (int64, error) {
		took, err := s.Order(ctx, f.word, 0, f.Processes...)
		return took.ToNS, err
	}
	took, err := s.Order(ctx, f.Do, x.By, f.Processes...)
	if err == nil {
		f.BeganNS = took.FromNS
	}
	return took.ToNS, err
}

// disconnect breaks connections once, or repeatedly until it is undone.
func (f *begun) disconnect(ctx context.Context, s System, x Fault) error {
	f.Means, f.word = tcpreset.Means, "reconnect"
	n, err := s.Sever(tcpreset.Group(x.To), f.Processes...)
	f.Connections = n
	switch {
	case err != nil:
		return err
	case x.For == 0 && n == 0 && !s.Others:
		return errors.New(noConnection(x.To))
	case x.For == 0:
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	type outcome struct {
		n   int
		err error
	}
	over := make(chan outcome, 1)
	go func() {
		var o outcome
		for o.err == nil && Until(ctx, s.Now, s.Now()+int64(severPause)) {
			n, err := s.Sever(tcpreset.Group(x.To), f.Processes...)
			o.n, o.err = o.n+n, err
		}
		over <- o
	}()
	f.settle = sync.OnceFunc(func() {
		stop()
		o := <-over
		f.Connections += o.n
		if o.err != nil && f.Error == "" {
			f.Error = o.err.Error()
		}
	})
	f.undo = func(context.Context) (int64, error) {
		f.settle()
		if f.Error == "" && f.Connections == 0 && !s.Others {
			return 0, errors.New(noConnection(x.To))
		}
		return s.Now(), nil
	}
	return nil
}

// noConnection describes a disconnect that found nothing to break.
func noConnection(group string) string {
	return fmt.Sprintf("no connection of %s carried messages there", group)
}

// cut partitions nodes from others. parted has the cuts in force, to which it adds this one.
func (f *begun) cut(s System, x Fault, parted *[]*begun) error {
	if s.Part == nil {
		return errors.New("the servers are not in places of their own")
	}
	f.pairs = pairs(s.Servers, f.Processes, cmp.Or(x.From, All))
	if len(f.pairs) == 0 {
		return fmt.Errorf("%s is the node that it is cut from", strings.Join(f.Processes, ", "))
	}
	part := func() error {
		var all [][2]int
		for _, one := range *parted {
			all = append(all, one.pairs...)
		}
		return s.Part(all)
	}
	f.word, f.Means = "mend", s.Parting
	f.undo = func(context.Context) (int64, error) {
		*parted = slices.DeleteFunc(*parted, func(one *begun) bool { return one == f })
		err := part()
		return s.Now(), err
	}
	*parted = append(*parted, f)
	return part()
}

// pairs returns the pairs of the processes' nodes and the nodes that from names; 0 stands for the
// clients.
func pairs(servers []Server, processes []string, from string) (all [][2]int) {
	var cut []int
	for _, s := range servers {
		if slices.Contains(processes, s.Name) && !slices.Contains(cut, s.Node) {
			cut = append(cut, s.Node)
		}
	}
	for i, n := range cut {
		if from == All || from == Clients {
			all = append(all, [2]int{0, n})
		}
		for _, other := range nodes(servers) {
			named := from == All || from == Nodes || from == strconv.Itoa(other)
			if named && other != n && !slices.Contains(cut[:i], other) { // each pair once
				all = append(all, [2]int{n, other})
			}
		}
	}
	return all
}

// undo ends the n-th fault.
func undo(ctx context.Context, s System, f *begun, n int) {
	ctx, cancel := context.WithTimeout(ctx, orderLimit)
	defer cancel()
	at, err := f.undo(ctx)
	if err != nil {
		f.Error = err.Error()
	}
	if f.Error != "" {
		s.tell(n, f, s.Now(), fmt.Sprintf("%s failed: %s", f.word, f.Error))
		return
	}
	f.UndoneNS = &at
	text := f.word + " "
	if f.settle != nil {
		text += f.To + ": " + f.broken() + " in all, "
	}
	s.tell(n, f, at, text+strings.Join(f.Processes, ", "))
}

// choose returns the processes of a target; for an agent, the agent itself. All, Leader and Follower
// exclude processes that are down.
func choose(ctx context.Context, s System, target string, down map[string]Verb) ([]string, error) {
	up := slices.DeleteFunc(slices.Clone(s.Servers), func(x Server) bool {
		if target == All {
			return down[x.Name] == Kill
		}
		stands, _ := perNode(s.Servers, x.Node)
		return down[stands.Name] != ""
	})
	switch {
	case target == Agents && s.Agent == "":
		return nil, errors.New("it needs agents")
	case target == Agents:
		return []string{s.Agent}, nil
	case !seeks(target) && target != All:
		return fixed(target, s.Servers)
	case len(up) == 0:
		return nil, errors.New("no server runs")
	case target == All:
		return fixed(All, up)
	}
	ctx, cancel := context.WithTimeout(ctx, leadersLimit)
	defer cancel()
	var why error // the last answer of the system, which says more than a timeout
	for {
		leaders, err := s.Leaders(ctx)
		if err == nil {
			var found []string
			if found, err = led(target, up, leaders); err == nil {
				return found, nil
			}
		}
		if why == nil || !errors.Is(err, context.DeadlineExceeded) {
			why = err
		}
		select {
		case <-time.After(leadersPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("asking which node leads: %w", why)
		}
	}
}
