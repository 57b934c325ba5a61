package fleet

import (
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/internal/fleet/protocol"
)

// says answers queries for coordinators.
func (f *Fleet) says(m *nats.Msg) {
	if !protocol.Answerable(m.Reply) {
		return
	}
	hostname, _ := os.Hostname() // "" if it has none
	b := protocol.Roster{Session: f.session, Version: f.o.Version, Host: hostname}
	f.mu.Lock()
	for _, p := range f.peers {
		b.Members = append(b.Members, protocol.Member{Name: p.Name, Instance: p.Instance, Host: p.Host, Version: p.Version, AgoNS: int64(time.Since(p.heard))})
	}
	f.mu.Unlock()
	_ = m.Respond(protocol.Encode(&b)) // the asker retries
}

// quiet returns how long nothing was heard from an agent.
func (f *Fleet) quiet(name string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.peers[name]; p != nil {
		return time.Since(p.heard)
	}
	return 0
}

// hear notes that an agent is alive.
func (f *Fleet) hear(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.peers[name]; p != nil {
		p.heard = time.Now()
	}
}
