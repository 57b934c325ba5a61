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

// Bounds of what an agent does for who asks.
const (
	lookSample = 500 * time.Millisecond // for which the processor is watched
	lookKept   = 3 * time.Second        // for which the same answer is given again
)

// A looker looks at its host, once at a time.
type looker struct {
	mu   sync.Mutex // held while it looks
	at   time.Time
	last protocol.Look
}

// look examines the host as host.Examine does. It refuses while a run is under way,
// which it would disturb, and while another look is.
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

// clock answers with the agent's clock when the question came and when it was
// answered, and with how far the host's wall clock was ahead of it.
func (a *Agent) clock(r micro.Request) {
	var b [protocol.ClockSize]byte
	binary.LittleEndian.PutUint64(b[:], uint64(a.base.Monotonic()))
	if !protocol.Answerable(r.Reply()) {
		return
	}
	ahead, _ := a.base.WallAhead()
	binary.LittleEndian.PutUint64(b[16:], uint64(ahead))
	binary.LittleEndian.PutUint64(b[8:], uint64(a.base.Monotonic()))
	_ = r.Respond(b[:]) // who asked asks again
}

// answers are what an agent's service offers to whoever asks.
func (a *Agent) answers() map[string]func(micro.Request) {
	return map[string]func(micro.Request){
		protocol.AboutSubject:                     func(r micro.Request) { reply(r, a.about()) },
		protocol.AskSubject(a.instance, "clock"):  a.clock,
		protocol.AskSubject(a.instance, "doctor"): func(r micro.Request) { reply(r, a.look()) },
	}
}

// about is what the agent says of itself.
func (a *Agent) about() protocol.About {
	hostname, _ := os.Hostname() // "" where it has none
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
