package trial

import (
	"net"
	"sync"
	"testing"

	"github.com/weirmq/weir/drivers/internal/sockets"
)

// A Proxy stands in front of a simulated server: it makes the connections fail and stall as those of
// a real server do that is restarted or stopped.
type Proxy struct {
	Address string
	sockets sockets.Set
	moving  sync.RWMutex // locked while it is stalled
}

// NewProxy starts a proxy for a server, until the end of the test.
func NewProxy(t testing.TB, server string) *Proxy {
	p := &Proxy{}
	p.Address = Serve(t, func(c net.Conn) {
		if tracked, err := p.sockets.Track(c); err == nil {
			join(proxied{tracked, p}, server)
		}
	})
	return p
}

// Cut closes all connections.
func (p *Proxy) Cut() error {
	p.sockets.Kill()
	return nil
}

// Stall passes nothing on to the server until resume is called.
func (p *Proxy) Stall() (resume func(), err error) {
	p.moving.Lock()
	return sync.OnceFunc(p.moving.Unlock), nil
}

// A proxied connection is one of a client.
type proxied struct {
	net.Conn
	by *Proxy
}

func (c proxied) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.by.moving.RLock()
	defer c.by.moving.RUnlock()
	return n, err
}
