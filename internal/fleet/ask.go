package fleet

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/weirmq/weir/internal/deal"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/join"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
)

// What anybody at the server may ask, beside the coordinator: it stands below what
// agents may publish, so that a survey needs no more than they have.
const (
	askPrefix    = hub.Subjects + "ask."
	aboutSubject = askPrefix + "about"       // of all agents
	bossSubject  = askPrefix + "coordinator" // of all coordinators
)

// askSubject is where one process of an agent is asked.
func askSubject(instance, what string) string { return askPrefix + instance + "." + what }

// Bounds of what an agent does for who asks.
const (
	lookSample = 500 * time.Millisecond // for which the processor is watched
	lookLimit  = 6 * time.Second
	lookKept   = 3 * time.Second // for which the same answer is given again
	lookMost   = 256 << 10       // bytes of an answer
	bossSize   = 1 << 20
	clockSize  = 24 // bytes of an answer about the clock
)

// A look is what an agent says of its host's fitness.
type look struct {
	Error    string         `json:"error,omitempty"`
	Findings []host.Finding `json:"findings,omitempty"`
	Daemon   Daemon         `json:"daemon"`
}

// A looker looks at its host, once at a time.
type looker struct {
	mu   sync.Mutex // held while it looks
	at   time.Time
	last look
}

// look examines the host as host.Examine does. It refuses while a run is under way,
// which it would disturb, and while another look is.
func (a *Agent) look() look {
	if x := a.about(); x.Busy != "" {
		return look{Error: "busy with run " + x.Busy + ", which a check would disturb"}
	}
	if !a.looker.mu.TryLock() {
		return look{Error: "another check is running"}
	}
	defer a.looker.mu.Unlock()
	if !a.looker.at.IsZero() && time.Since(a.looker.at) < lookKept {
		return a.looker.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	work := a.Dir
	if work == "" {
		work = os.TempDir()
	}
	var l look
	l.Findings = host.Examine(ctx, host.Patient{Work: work, Temp: os.TempDir(), Sample: lookSample})
	l.Daemon = AskDaemon(ctx, a.base)
	a.looker.at, a.looker.last = time.Now(), l
	return l
}

// clock answers with the agent's clock when the question came and when it was
// answered, and with how far the host's wall clock was ahead of it.
func (a *Agent) clock(r micro.Request) {
	var b [clockSize]byte
	binary.LittleEndian.PutUint64(b[:], uint64(reading(a.base)))
	if !answerable(r.Reply()) {
		return
	}
	ahead, _ := ahead(a.base)
	binary.LittleEndian.PutUint64(b[16:], uint64(ahead))
	binary.LittleEndian.PutUint64(b[8:], uint64(reading(a.base)))
	_ = r.Respond(b[:]) // who asked asks again
}

// ahead is the wall clock's reading, ns since 1970, less that of the host's
// monotonic clock, to within bound.
func ahead(c *pace.Clock) (ns, bound int64) {
	before := reading(c)
	wall := c.Wall().UnixNano()
	after := reading(c)
	half := (after - before) / 2
	return wall - before - half, half + 1
}

// answers are what an agent's service offers to whoever asks.
func (a *Agent) answers() map[string]func(micro.Request) {
	return map[string]func(micro.Request){
		aboutSubject:                     func(r micro.Request) { reply(r, a.about()) },
		askSubject(a.instance, "clock"):  a.clock,
		askSubject(a.instance, "doctor"): func(r micro.Request) { reply(r, a.look()) },
	}
}

// about is what the agent says of itself.
func (a *Agent) about() About {
	hostname, _ := os.Hostname() // "" where it has none
	x := About{
		Name: a.Name, Instance: a.instance, Key: a.self.Key(), Version: a.Version, Labels: a.Labels, Host: hostname, Clock: a.clockID(), Boot: pace.BootID(),
		OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Allow: a.Allow, MemoryB: host.MemoryAvailable(),
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	x.Session = a.session
	switch {
	case a.task != nil:
		x.Busy = a.task.job.Run
	case a.hosts():
		x.Busy = a.hosting.run
	}
	return x
}

// Bounds of what an agent says of itself.
const (
	wordSize  = 256 // bytes of each word
	mostWords = 16  // in a list
)

// check says what is wrong with what an agent says of itself. What passes may be
// shown on a terminal.
func (x *About) check() error {
	if err := deal.CheckName(x.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	words := append([]string{x.Instance, x.Key, x.Version, x.Host, x.Clock, x.Boot, x.OS, x.Busy, x.Session}, x.Allow...)
	for k, v := range x.Labels {
		words = append(words, k, v)
	}
	for _, w := range words {
		if !isWord(w) {
			return fmt.Errorf("%w: agent %s describes itself with something too long, or not text", ErrMalformed, x.Name)
		}
	}
	switch {
	case x.Instance == "" || strings.ContainsAny(x.Instance, ".*> "):
		return fmt.Errorf("%w: an agent without an instance", ErrMalformed)
	case len(x.Labels) > join.Labels, len(x.Allow) > mostWords, x.Cores < 0 || x.Cores > 1<<20:
		return fmt.Errorf("%w: agent %s sends too long a description of itself", ErrMalformed, x.Name)
	}
	return nil
}

// isWord reports whether text is short, and all of it can be seen.
func isWord(text string) bool {
	return len(text) <= wordSize && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// A boss is what a coordinator says of itself.
type boss struct {
	Session string  `json:"session"`
	Version string  `json:"version"`
	Host    string  `json:"host"`
	Members []heard `json:"members,omitempty"`
}

// A heard says when an agent that joined was heard of last.
type heard struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Host     string `json:"host"`
	Version  string `json:"version"`
	AgoNS    int64  `json:"ago_ns"`
}

func (b *boss) check() error {
	words := []string{b.Session, b.Version, b.Host}
	for _, m := range b.Members {
		words = append(words, m.Name, m.Instance, m.Host, m.Version)
		if m.AgoNS < 0 {
			return fmt.Errorf("%w: an agent with an instant in the future", ErrMalformed)
		}
	}
	for _, w := range words {
		if !isWord(w) {
			return fmt.Errorf("%w: a coordinator describes itself with something too long, or not text", ErrMalformed)
		}
	}
	if b.Session == "" {
		return fmt.Errorf("%w: a coordinator without a session", ErrMalformed)
	}
	return nil
}

// says answers who asks for coordinators.
func (f *Fleet) says(m *nats.Msg) {
	if !answerable(m.Reply) {
		return
	}
	hostname, _ := os.Hostname() // "" where it has none
	b := boss{Session: f.session, Version: f.o.Version, Host: hostname}
	f.mu.Lock()
	for _, p := range f.peers {
		b.Members = append(b.Members, heard{p.Name, p.Instance, p.Host, p.Version, int64(time.Since(p.heard))})
	}
	f.mu.Unlock()
	_ = m.Respond(encode(&b)) // who asked asks again
}

// hear notes that an agent was heard of.
func (f *Fleet) hear(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.peers[name]; p != nil {
		p.heard = time.Now()
	}
}
