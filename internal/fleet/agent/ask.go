package agent

import (
	"context"
	"encoding/binary"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
)

// Limits of what an agent does on request.
const (
	lookSample = 500 * time.Millisecond // to measure the processor
	lookKept   = 3 * time.Second        // for which an answer is cached
)

// A looker examines its host, once at a time.
type looker struct {
	mu   sync.Mutex // held during a look
	at   time.Time
	last protocol.Look
}

// askTime asks the host's time daemons, unless in a run, which that would disturb.
func (a *Agent) askTime() protocol.Look {
	if x := a.about(); x.Busy != "" {
		return protocol.Look{Error: "busy with run " + x.Busy}
	}
	return protocol.Look{Daemon: host.AskDaemon(context.Background(), a.base)}
}

// look examines the host like host.Examine. It refuses during a run, which it would disturb, and during
// another look.
func (a *Agent) look() protocol.Look {
	if x := a.about(); x.Busy != "" {
		return protocol.Look{Error: "busy with run " + x.Busy + ", which a check would disturb"}
	}
	if !a.looker.mu.TryLock() {
		return protocol.Look{Error: "another check is running"}
	}
	defer a.looker.mu.Unlock()
	if !a.looker.at.IsZero() && time.Since(a.looker.at) < lookKept {
		return a.looker.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), protocol.LookLimit)
	defer cancel()
	work := a.Dir
	if work == "" {
		work = os.TempDir()
	}
	var l protocol.Look
	l.Findings = host.Examine(ctx, host.CheckTarget{Work: work, Temp: os.TempDir(), Sample: lookSample})
	l.Daemon = host.AskDaemon(ctx, a.base)
	a.looker.at, a.looker.last = time.Now(), l
	return l
}

// clock answers with the agent's clock at the arrival and the answer, and the lead of the host's wall clock
// over it.
func (a *Agent) clock(r micro.Request) {
	var b [protocol.ClockSize]byte
	binary.LittleEndian.PutUint64(b[:], uint64(a.base.Monotonic()))
	if !protocol.Answerable(r.Reply()) {
		return
	}
	ahead, _ := a.base.WallAhead()
	binary.LittleEndian.PutUint64(b[16:], uint64(ahead))
	binary.LittleEndian.PutUint64(b[8:], uint64(a.base.Monotonic()))
	_ = r.Respond(b[:]) // the asker retries
}

// answers are the queries that an agent answers for anyone.
func (a *Agent) answers() map[string]func(micro.Request) {
	return map[string]func(micro.Request){
		protocol.AboutSubject:                     func(r micro.Request) { reply(r, a.about()) },
		protocol.AskSubject(a.instance, "clock"):  a.clock,
		protocol.AskSubject(a.instance, "doctor"): func(r micro.Request) { reply(r, a.look()) },
		protocol.AskSubject(a.instance, "time"):   func(r micro.Request) { reply(r, a.askTime()) },
	}
}

// about is the agent's description of itself.
func (a *Agent) about() protocol.About {
	hostname, _ := os.Hostname() // "" if it has none
	x := protocol.About{
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
