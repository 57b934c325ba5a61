// Package survey looks at all agents and coordinators at a server, and says what is wrong
// with them. It needs no more than an agent may do there.
package survey

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/internal/pace"
)

// Bounds of a survey.
const (
	mostSeen     = 4096
	askEvery     = 500 * time.Millisecond // everybody, again
	lookExchange = 12                     // exchanges with each clock
	lookAtOnce   = 16                     // agents
)

// A Survey is what a look at all agents at a server is to do.
type Survey struct {
	Place   Place
	Wait    time.Duration // for agents; 0: see Place
	Doctor  bool          // ask what is wrong with their hosts
	Version string
	Log     *slog.Logger
}

// A Sight is what a survey saw.
type Sight struct {
	Weir         string // the identity of the build that looked
	At           string // where, without secrets
	StoodIn      bool   // for a coordinator, since there was none
	Coordinators []Coordinator
	Agents       []Seen      // by their names
	Strange      int         // answers that could not be read
	Daemon       host.Daemon // of this host, where doctors were asked for
}

// A Coordinator is a coordinator that answered.
type Coordinator struct{ Session, Version, Host string }

// A Seen is an agent that answered, or that a coordinator told of.
type Seen struct {
	protocol.About
	Gone     bool          // it did not answer: of About there are the name, the host and the version alone
	Ago      time.Duration // when it was heard of last, before the survey's end
	Clock    Reading
	Findings []host.Finding // of its host
	Unasked  string         // why there are none; "": there are
	Daemon   host.Daemon
}

// A Reading is what a few exchanges told of an agent's monotonic clock against this
// host's.
type Reading struct {
	Same      bool  // it is this host's own
	Known     bool  // some exchange was had
	OffsetNS  int64 // to be added to its readings
	BoundNS   int64 // of OffsetNS: half of the shortest way there and back
	WallNS    int64 // by how much its host's wall clock is ahead of this one's, to within the same
	Exchanges int
}

// Look does a survey. Its errors are those of hub.Start and hub.Dial.
func (s *Survey) Look(ctx context.Context) (*Sight, error) {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	nc, sight, leave, err := s.Place.reach(ctx, s.Log)
	if err != nil {
		return nil, err
	}
	defer leave()
	most := s.Wait
	if most <= 0 {
		most = time.Second
		if sight.StoodIn {
			most = 5 * time.Second
		}
	}
	v := &surveyor{nc: nc, base: pace.NewClock(), agents: map[string]*Seen{}, heard: map[string]time.Time{}, rosters: map[string]*protocol.Roster{}}
	if err := v.gather(ctx, most); err != nil {
		return nil, err
	}
	if s.Doctor {
		sight.Daemon = host.AskDaemon(ctx, v.base)
	}
	v.visit(ctx, s.Doctor)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v.tell(sight)
	sight.Weir = s.Version
	return sight, nil
}

// A surveyor asks.
type surveyor struct {
	nc      *nats.Conn
	base    *pace.Clock
	agents  map[string]*Seen            // by their instances
	heard   map[string]time.Time        // when, by the same
	rosters map[string]*protocol.Roster // by their sessions
	strange int
}

// gather asks everybody who is there, again and again, for that long.
func (v *surveyor) gather(ctx context.Context, most time.Duration) error {
	agents, coordinators := v.nc.NewRespInbox(), v.nc.NewRespInbox()
	answers := make(chan *nats.Msg, mostSeen)
	for _, inbox := range []string{agents, coordinators} {
		sub, err := v.nc.ChanSubscribe(inbox, answers)
		if err != nil {
			return fmt.Errorf("asking the agents: %w", err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	every := min(most, askEvery)
	for range (most + every - 1) / every {
		err := errors.Join(v.nc.PublishRequest(protocol.AboutSubject, agents, nil), v.nc.PublishRequest(protocol.RosterSubject, coordinators, nil))
		if err != nil {
			return fmt.Errorf("asking the agents: %w", err)
		}
		over := time.NewTimer(every) // one for each: while this host stood still it waited for no answer
		for waiting := true; waiting; {
			select {
			case m := <-answers:
				v.take(m, m.Subject == agents)
			case <-over.C:
				waiting = false
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	for len(answers) > 0 {
		m := <-answers
		v.take(m, m.Subject == agents)
	}
	return nil
}

// take takes an answer. That no process is there to answer is none.
func (v *surveyor) take(m *nats.Msg, agent bool) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return
	}
	if !agent {
		var b protocol.Roster
		if protocol.DecodeLoosely(m.Data, protocol.RosterSize, &b) != nil || b.Check() != nil {
			v.strange++
		} else if len(v.rosters) < mostSeen {
			v.rosters[b.Session] = &b
		}
		return
	}
	var x protocol.About // of an agent of another version there may be more than is known here
	if protocol.DecodeLoosely(m.Data, protocol.SmallSize, &x) != nil || x.Check() != nil {
		v.strange++
		return
	}
	was := v.agents[x.Instance]
	if was == nil {
		if len(v.agents) >= mostSeen {
			return
		}
		was = &Seen{}
		v.agents[x.Instance] = was
	}
	was.About = x
	v.heard[x.Instance] = time.Now()
}

// visit asks each agent by itself: first all for their clocks, one after another,
// since one that is asked with others waits for them.
func (v *surveyor) visit(ctx context.Context, doctor bool) {
	for _, x := range v.agents {
		x.Clock = v.compare(ctx, x)
	}
	if !doctor {
		return
	}
	var all sync.WaitGroup
	room := make(chan struct{}, lookAtOnce)
	for _, x := range v.agents {
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			v.consult(ctx, x)
		})
	}
	all.Wait()
}

// compare has a few exchanges with an agent's clock. The question is this side's, so
// that its offset is what is to be added here to get the agent's reading: the
// negative of what is told.
func (v *surveyor) compare(ctx context.Context, x *Seen) Reading {
	r := Reading{Same: x.About.Clock != "" && x.About.Clock == pace.ClockID()}
	subject := protocol.AskSubject(x.Instance, "clock")
	best := int64(-1)
	for missed := 0; r.Exchanges < lookExchange && missed < 2; {
		var e offset.Exchange
		asking, over := context.WithTimeout(ctx, protocol.ClockLimit)
		e.T1 = v.base.Monotonic()
		m, err := v.nc.RequestWithContext(asking, subject, nil)
		e.T4 = v.base.Monotonic()
		over()
		if err != nil || len(m.Data) != protocol.ClockSize {
			missed++
			continue
		}
		e.T2, e.T3 = int64(binary.LittleEndian.Uint64(m.Data)), int64(binary.LittleEndian.Uint64(m.Data[8:]))
		if e.Check() != nil {
			missed++
			continue
		}
		r.Exchanges++
		if best >= 0 && e.Delay() >= best {
			continue
		}
		best = max(e.Delay(), 0)
		theirs := int64(binary.LittleEndian.Uint64(m.Data[16:]))
		ours, _ := v.base.WallAhead()
		r.Known, r.OffsetNS, r.BoundNS = true, -e.Offset(), best/2+1
		r.WallNS = theirs - ours - r.OffsetNS
	}
	return r
}

// consult asks an agent what is wrong with its host.
func (v *surveyor) consult(ctx context.Context, x *Seen) {
	ctx, cancel := context.WithTimeout(ctx, protocol.LookLimit+protocol.ClockLimit)
	defer cancel()
	m, err := v.nc.RequestWithContext(ctx, protocol.AskSubject(x.Instance, "doctor"), nil)
	if err != nil {
		x.Unasked = "it did not answer"
		return
	}
	var l protocol.Look
	if err := protocol.Decode(m.Data, protocol.LookMost, &l); err != nil {
		x.Unasked = "it answered what cannot be read"
		return
	}
	x.Unasked = protocol.Short(l.Error)
	for _, f := range l.Findings[:min(len(l.Findings), 64)] {
		for _, text := range []*string{&f.Name, &f.Found, &f.Why, &f.Do} {
			*text = protocol.Shown(*text)
		}
		for i := range f.Commands {
			f.Commands[i] = protocol.Shown(f.Commands[i])
		}
		x.Findings = append(x.Findings, f)
	}
	x.Daemon = l.Daemon
	x.Daemon.Source, x.Daemon.Why = protocol.Short(l.Daemon.Source), protocol.Short(l.Daemon.Why)
}

// tell puts together what was seen.
func (v *surveyor) tell(s *Sight) {
	now := time.Now()
	for instance, x := range v.agents {
		x.Ago = now.Sub(v.heard[instance])
		s.Agents = append(s.Agents, *x)
	}
	for _, b := range v.rosters {
		s.Coordinators = append(s.Coordinators, Coordinator{b.Session, b.Version, b.Host})
		for _, m := range b.Members[:min(len(b.Members), mostSeen)] {
			if v.agents[m.Instance] == nil {
				s.Agents = append(s.Agents, Seen{
					About: protocol.About{Name: m.Name, Instance: m.Instance, Host: m.Host, Version: m.Version, Session: b.Session},
					Gone:  true, Ago: time.Duration(m.AgoNS), Unasked: "it did not answer",
				})
			}
		}
	}
	slices.SortFunc(s.Coordinators, func(a, b Coordinator) int { return strings.Compare(a.Session, b.Session) })
	slices.SortFunc(s.Agents, func(a, b Seen) int {
		return strings.Compare(a.Name+" "+a.Instance, b.Name+" "+b.Instance)
	})
	s.Strange = v.strange
}

// Agents asks all agents at a server what they say of themselves, for that long,
// whomever they belong to, by their names.
func Agents(nc *nats.Conn, most time.Duration) ([]protocol.About, error) {
	v := &surveyor{nc: nc, agents: map[string]*Seen{}, heard: map[string]time.Time{}, rosters: map[string]*protocol.Roster{}}
	if err := v.gather(context.Background(), most); err != nil {
		return nil, err
	}
	var s Sight
	v.tell(&s)
	var all []protocol.About
	for _, x := range s.Agents {
		if !x.Gone {
			all = append(all, x.About)
		}
	}
	return all, nil
}
