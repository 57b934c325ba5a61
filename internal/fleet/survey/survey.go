// Package survey finds all agents and coordinators at a server, and diagnoses their problems. It needs no
// more permissions there than an agent.
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

// Limits of a survey.
const (
	mostSeen     = 4096
	askEvery     = 500 * time.Millisecond // interval of broadcast queries
	lookExchange = 12                     // exchanges per clock
	lookAtOnce   = 16                     // agents at once
)

// A Survey describes a look at all agents at a server.
type Survey struct {
	Place   Place
	Wait    time.Duration // for agents to answer; 0: see Place
	Agents  int           // stop waiting when this many have answered; 0: never
	Doctor  bool          // diagnose their hosts
	Version string
	Log     *slog.Logger
}

// A Sight is the result of a survey.
type Sight struct {
	Weir         string // build identity of the surveyor
	At           string // address, without secrets
	StoodIn      bool   // as a coordinator, since there was none
	Coordinators []Coordinator
	Agents       []Seen      // sorted by name
	Strange      int         // answers that could not be parsed
	Daemon       host.Daemon // of this host, with doctors only
}

// A Coordinator is a coordinator that answered.
type Coordinator struct{ Session, Version, Host string }

// A Seen is an agent that answered, or that a coordinator listed.
type Seen struct {
	protocol.About
	Gone     bool          // no answer: About has the name, the host and the version only
	Ago      time.Duration // last sign of life, before the survey's end
	Clock    Reading
	Findings []host.Finding // about its host
	Unasked  string         // why there are none; "": there are
	Daemon   host.Daemon
}

// A Reading compares an agent's monotonic clock with this host's, after a few exchanges.
type Reading struct {
	Same      bool  // it is this host's clock
	Known     bool  // some exchange succeeded
	OffsetNS  int64 // to add to its readings
	BoundNS   int64 // of OffsetNS: half of the shortest round trip
	WallNS    int64 // lead of its host's wall clock over this one's, with the same bound
	Exchanges int
}

// Look performs a survey. Its errors are those of hub.Start and hub.Dial.
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
	if err := v.gather(ctx, most, s.Agents); err != nil {
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

// A surveyor queries the agents.
type surveyor struct {
	nc      *nats.Conn
	base    *pace.Clock
	agents  map[string]*Seen            // by instance
	heard   map[string]time.Time        // last answers, by instance
	rosters map[string]*protocol.Roster // by session
	strange int
}

// gather repeatedly queries everyone for that long, or until this many agents have answered, unless that is 0.
func (v *surveyor) gather(ctx context.Context, most time.Duration, enough int) error {
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
		if enough > 0 && len(v.agents) >= enough {
			break
		}
		err := errors.Join(v.nc.PublishRequest(protocol.AboutSubject, agents, nil), v.nc.PublishRequest(protocol.RosterSubject, coordinators, nil))
		if err != nil {
			return fmt.Errorf("asking the agents: %w", err)
		}
		over := time.NewTimer(every) // one per round: while this host was suspended it waited for no answer
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

// take handles an answer. A "no responders" message is none.
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
	var x protocol.About // other versions may have unknown fields
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

// visit queries each agent individually: first all clocks one by one, since concurrent queries would delay
// each other. Without doctor, the agents ask only their time daemons.
func (v *surveyor) visit(ctx context.Context, doctor bool) {
	for _, x := range v.agents {
		x.Clock = v.compare(ctx, x)
	}
	what := "time"
	if doctor {
		what = "doctor"
	}
	var all sync.WaitGroup
	room := make(chan struct{}, lookAtOnce)
	for _, x := range v.agents {
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			v.consult(ctx, x, what)
		})
	}
	all.Wait()
}

// compare exchanges a few messages with an agent's clock. This side asks, so the offset it computes is what
// to add here to get the agent's reading: the negative of the reported one.
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

// consult asks an agent about its host.
func (v *surveyor) consult(ctx context.Context, x *Seen, what string) {
	ctx, cancel := context.WithTimeout(ctx, protocol.LookLimit+protocol.ClockLimit)
	defer cancel()
	m, err := v.nc.RequestWithContext(ctx, protocol.AskSubject(x.Instance, what), nil)
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
	for _, text := range []*string{&x.Daemon.Name, &x.Daemon.Source, &x.Daemon.Why} {
		*text = protocol.Short(*text)
	}
}

// tell compiles what was seen.
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

// Agents returns the self-descriptions of all agents at a server that answer within that time, whichever
// coordinator they belong to, sorted by name.
func Agents(nc *nats.Conn, most time.Duration) ([]protocol.About, error) {
	v := &surveyor{nc: nc, agents: map[string]*Seen{}, heard: map[string]time.Time{}, rosters: map[string]*protocol.Roster{}}
	if err := v.gather(context.Background(), most, 0); err != nil {
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
