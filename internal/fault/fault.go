// Package fault plans faults on the servers of a run, carries them out, and computes their effects. It
// does not deal with processes itself: the process that started the servers carries out its orders.
package fault

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/slowdisk"
	"github.com/weirmq/weir/internal/tcpreset"
)

// A Verb is the kind of a fault.
type Verb string

// The verbs.
const (
	Kill    Verb = "kill"    // kills the process and its children at once (SIGKILL)
	Stop    Verb = "stop"    // suspends the process (SIGSTOP)
	Restart Verb = "restart" // terminates the process (SIGTERM) and starts it again at once

	Disconnect Verb = "disconnect" // breaks client connections; with a duration also new ones
	Cut        Verb = "cut"        // silently drops packets between a node and others
	Fill       Verb = "fill"       // fills the disk that holds a server's data
	Clock      Verb = "clock"      // steps the wall clock as seen by a server or an agent; the host's stays
	Slow       Verb = "slow"       // delays flushes and reads of the disk that holds a server's data
)

// Verbs lists the verbs.
func Verbs() []string {
	return []string{string(Kill), string(Stop), string(Restart), string(Disconnect), string(Cut), string(Fill), string(Slow), string(Clock)}
}

// Targets other than a node number or a process name.
const (
	All      = "all"
	Leader   = "leader"   // the node that leads most of the run's destinations at that time
	Follower = "follower" // the first node that leads none of them
)

// What a Cut separates a node from, other than All and a node number.
const (
	Clients = "clients"
	Nodes   = "nodes"
)

// Agents is a target of Clock: the agents of a fleet that send or receive.
const Agents = "agents"

// groups returns the connection groups that a Disconnect can break.
func groups() []string {
	return []string{string(tcpreset.Clients), string(tcpreset.Producers), string(tcpreset.Consumers)}
}

// A Fault is an action on servers, once or repeatedly.
type Fault struct {
	Do    Verb
	To    string        // All, Leader, Follower, a node number, a process name; Disconnect: a tcpreset.Group
	From  string        // Disconnect: servers, as in To; Cut: All, Clients, Nodes or a node number; "": All
	On    string        // Clock on Agents: name of a single agent; "": all
	By    time.Duration // Slow: added delay of an operation; Clock: step, negative is backwards
	At    time.Duration // since the start of the measured window
	For   time.Duration // until it is undone; 0: never, or nothing to undo
	Every time.Duration // from one start to the next; 0: once
}

// String describes the action: "kill leader".
func (f Fault) String() string {
	text := string(f.Do) + " " + f.To
	if f.From != "" {
		text += " from " + f.From
	}
	if f.On != "" {
		text += " on " + f.On
	}
	if f.By != 0 {
		text += " by " + quantity.Typed(f.By)
	}
	return text
}

// OfAgents reports whether the target is processes of agents rather than servers.
func (f Fault) OfAgents() bool { return f.Do == Clock && f.To == Agents }

// Target returns the servers concerned: All, Leader, Follower, a node number or a process name; Agents
// if there are none.
func (f Fault) Target() string {
	if f.Do == Disconnect {
		return cmp.Or(f.From, All)
	}
	return f.To
}

// Most is the largest number of faults in a run, repetitions included.
const Most = 1000

// A step is an action at an instant since the run's epoch.
type step struct {
	at     int64
	fault  Fault
	undoes *begun // nil: it starts a fault
}

// Steps returns how many faults start in a measured window of the given length. 0 means an unknown
// end, where repeating faults repeat as often as allowed.
func Steps(faults []Fault, window time.Duration) int { return len(plan(faults, 0, window)) }

// plan returns every start of a fault, in order of time. from is the start of the measured window,
// since the epoch.
func plan(faults []Fault, from, window time.Duration) []step {
	var all []step
	for _, f := range faults {
		for n := range Most + 1 {
			at := f.At + time.Duration(n)*f.Every
			if n > 0 && (f.Every == 0 || window > 0 && at >= window) {
				break
			}
			all = append(all, step{at: int64(from + at), fault: f})
		}
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return all
}

// A Server is a process of the system.
type Server struct {
	Name string   // "server-2"
	Node int      // from 1
	At   []string // host:port of each of its ports, as clients reach it
}

// perNode returns the process that represents a node: its last process, which the others support.
func perNode(servers []Server, node int) (Server, bool) {
	for _, s := range slices.Backward(servers) {
		if s.Node == node {
			return s, true
		}
	}
	return Server{}, false
}

// nodes returns the numbers of the nodes.
func nodes(servers []Server) []int {
	var all []int
	for _, s := range servers {
		if !slices.Contains(all, s.Node) {
			all = append(all, s.Node)
		}
	}
	slices.Sort(all)
	return all
}

// CheckTarget returns an error if a node number or process name is not among servers.
func CheckTarget(target string, servers []Server) error {
	if _, err := fixed(target, servers); err != nil {
		return fmt.Errorf("%w (all, leader, follower, a node from 1 to %d, or %s)", err, len(nodes(servers)), names(servers))
	}
	return nil
}

// number parses a node number; 0 if it is not one.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// names lists process names.
func names(servers []Server) string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Name)
	}
	return strings.Join(all, ", ")
}

// fixed returns the processes of a target that does not depend on leadership.
func fixed(target string, servers []Server) ([]string, error) {
	if target == All {
		var names []string
		for _, s := range servers {
			names = append(names, s.Name)
		}
		return names, nil
	}
	if n := number(target); n != 0 {
		s, ok := perNode(servers, n)
		if !ok {
			return nil, fmt.Errorf("there is no node %d", n)
		}
		return []string{s.Name}, nil
	}
	for _, s := range servers {
		if s.Name == target {
			return []string{s.Name}, nil
		}
	}
	return nil, fmt.Errorf("no process is named %q", target)
}

// led returns the process of the node that leads most, or of the first node that leads nothing.
func led(target string, servers []Server, leaders []string) ([]string, error) {
	leads := map[int]int{}
	for _, address := range leaders {
		for _, s := range servers {
			if slices.Contains(s.At, address) {
				leads[s.Node]++
				break
			}
		}
	}
	best := 0
	for _, n := range nodes(servers) {
		switch {
		case target == Follower && leads[n] == 0:
			s, _ := perNode(servers, n)
			return []string{s.Name}, nil
		case leads[n] > leads[best]:
			best = n
		}
	}
	switch {
	case target == Follower:
		return nil, fmt.Errorf("each node leads a part of the destinations")
	case best == 0:
		return nil, fmt.Errorf("no node leads at this time (the system names %q)", leaders)
	}
	s, _ := perNode(servers, best)
	return []string{s.Name}, nil
}

// Seeks reports whether the target depends on leadership.
func (f Fault) Seeks() bool { return seeks(f.Target()) }

func seeks(target string) bool { return target == Leader || target == Follower }

// Form describes the syntax of a fault, for messages.
const Form = `a fault such as "kill leader at 10s for 5s", "stop 2 at 5s for 1s every 10s", "restart all at 20s", "disconnect consumers at 5s", "cut leader from nodes at 5s for 5s", "fill 1 at 5s for 5s", "slow leader by 20ms at 5s for 5s", "clock 1 by -5s at 5s for 5s" or "clock agents by -5s at 5s for 5s"`

// Text formats a fault in the syntax of Parse.
func (f Fault) Text() string {
	text := f.String() + " at " + quantity.Typed(f.At)
	if f.For > 0 {
		text += " for " + quantity.Typed(f.For)
	}
	if f.Every > 0 {
		text += " every " + quantity.Typed(f.Every)
	}
	return text
}

// Scaled returns the fault with its times multiplied by factor; each non-zero time is at least a
// millisecond.
func (f Fault) Scaled(factor float64) Fault {
	for _, name := range []string{"at", "for", "every"} { // by describes the fault, not the run
		if t := f.When(name); *t > 0 {
			*t = max(time.Millisecond, time.Duration(float64(*t)*factor).Round(time.Millisecond))
		}
	}
	return f
}

// Parse parses a fault: a verb, a target, an optional from with another target, and by, at, for and
// every with a duration each. Only at is required. It does not call Check.
func Parse(text string) (Fault, error) {
	words := strings.Fields(text)
	for i := range words { // kill 1 at 2s, for 1s
		if plain := strings.TrimSuffix(words[i], ","); plain != "" && i+1 < len(words) {
			words[i] = plain
		}
	}
	if len(words) > 0 {
		if meant := verbs(words[0]); meant != "" {
			return Fault{}, fmt.Errorf("%q is not known, did you mean %s?", words[0], meant)
		}
	}
	if len(words) < 2 {
		return Fault{}, fmt.Errorf("%q is not a fault", text)
	}
	if slices.Contains([]string{"node", "broker", "server"}, strings.ToLower(words[1])) && len(words) > 2 {
		return Fault{}, fmt.Errorf("%q is not a target, did you mean \"%s %s\"?", words[1], words[0], words[2])
	}
	f := Fault{Do: Verb(words[0]), To: words[1]}
	rest := words[2:]
	given := map[string]bool{}
	for ; len(rest) > 1; rest = rest[2:] {
		into, other := f.When(rest[0]), f.Word(rest[0])
		if into == nil && other == nil && (slices.Contains(Verbs(), rest[0]) || verbs(rest[0]) != "") {
			return Fault{}, fmt.Errorf("%q begins another fault: give it a flag or a line of its own", strings.Join(rest, " "))
		}
		if into == nil && other == nil {
			return Fault{}, fmt.Errorf("%q is not known%s", rest[0], instant(rest[0]))
		}
		if given[rest[0]] {
			return Fault{}, fmt.Errorf("%q is given twice", rest[0])
		}
		given[rest[0]] = true
		if other != nil {
			*other = rest[1]
			continue
		}
		v, err := Step(rest[1])
		if err != nil {
			return Fault{}, fmt.Errorf("%s: %q is not a duration", rest[0], rest[1])
		}
		*into = v
	}
	switch {
	case len(rest) == 1 && instant(rest[0]) != "":
		return Fault{}, fmt.Errorf("%q does not say what it is%s", rest[0], instant(rest[0]))
	case len(rest) == 1:
		return Fault{}, fmt.Errorf("%q has no value", rest[0])
	case !given["at"]:
		return Fault{}, fmt.Errorf("%q does not say when", text)
	}
	return f, nil
}

// verbs returns the verbs that other tools call by this word; "" if unknown.
func verbs(word string) string {
	switch strings.ToLower(word) {
	case "pause", "freeze", "suspend", "sigstop":
		return `"stop"`
	case "crash", "sigkill", "terminate":
		return `"kill"`
	case "isolate":
		return `"cut"`
	case "reboot", "bounce":
		return `"restart"`
	case "reset":
		return `"disconnect"`
	}
	return ""
}

// instant suggests "at" for a duration without a preceding word.
func instant(word string) string {
	if _, err := Step(word); err != nil {
		return ""
	}
	return fmt.Sprintf(", did you mean \"at %s\"?", word)
}

// Step parses a duration that may be negative.
func Step(text string) (time.Duration, error) {
	back, ok := strings.CutPrefix(text, "-")
	if !ok || strings.HasPrefix(back, "+") {
		return quantity.Duration(text)
	}
	v, err := quantity.Duration(back)
	return -v, err
}

// Times returns the names of the times that a verb supports.
func Times(do Verb) []string {
	if do == Slow || do == Clock {
		return []string{"by", "at", "for", "every"}
	}
	return []string{"at", "for", "every"}
}

// When returns the time of that name; nil if it is not one of Times.
func (f *Fault) When(name string) *time.Duration {
	switch name {
	case "by":
		return &f.By
	case "at":
		return &f.At
	case "for":
		return &f.For
	case "every":
		return &f.Every
	}
	return nil
}

// Words returns the names of a fault's other fields, each with the verbs that support it.
func Words() map[string][]Verb {
	return map[string][]Verb{"from": {Disconnect, Cut}, "on": {Clock}}
}

// Word returns the field of that name; nil if it is not one of Words.
func (f *Fault) Word(name string) *string {
	switch name {
	case "from":
		return &f.From
	case "on":
		return &f.On
	}
	return nil
}

// Check returns an error, with the allowed values, if the fault is invalid.
func (f Fault) Check() error {
	switch {
	case !slices.Contains(Verbs(), string(f.Do)):
		return fmt.Errorf("%q is not something to do (%s)", f.Do, strings.Join(Verbs(), ", "))
	case f.At < 0 || f.For < 0 || f.Every < 0:
		return errors.New("a time is negative (0s or more)")
	case f.By != 0 && f.Do != Slow && f.Do != Clock:
		return fmt.Errorf("%s has no by (leave it out)", f.Do)
	case f.Do == Slow && (f.By <= 0 || f.By > slowdisk.Most):
		return fmt.Errorf("slow needs how much longer a flush or a read takes (by 20ms, and up to %s)", quantity.Typed(slowdisk.Most))
	case f.Do == Clock && (f.By == 0 || f.By.Abs() > clockstep.Most):
		return fmt.Errorf("clock needs how far the clock steps (by -5s is back, and up to %s)", quantity.Typed(clockstep.Most))
	case f.On != "" && !f.OfAgents():
		return errors.New("on names an agent, beside clock agents (leave it out)")
	case f.Do == Restart && f.For > 0:
		return errors.New("a restart has no length (leave out for)")
	case f.Do == Disconnect && !slices.Contains(groups(), f.To):
		return fmt.Errorf("%q is not a group of connections (%s; from says to which servers)", f.To, strings.Join(groups(), ", "))
	case f.From != "" && f.Do != Disconnect && f.Do != Cut:
		return fmt.Errorf("%s has no from (leave it out)", f.Do)
	case f.Do == Cut && f.From != "" && !slices.Contains([]string{All, Clients, Nodes}, f.From) && number(f.From) == 0:
		return fmt.Errorf("from %s is not known (%s, %s, %s or the number of a node)", f.From, All, Clients, Nodes)
	case f.Do == Cut && f.From == f.To && f.To != All:
		return errors.New("a node cannot be cut from itself (from another one)")
	case f.Every > 0 && f.Do != Restart && (f.Do != Disconnect || f.For > 0) && (f.For == 0 || f.For >= f.Every):
		return fmt.Errorf("every %v needs a shorter for, so that each is undone before the next", f.Every)
	}
	return nil
}
