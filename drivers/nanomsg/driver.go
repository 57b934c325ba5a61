// Package nanomsg drives the sockets of nanomsg by mangos, its implementation in Go. page.md says
// what weir's terms mean here. Package mesh opens the sockets of producers and consumers and
// connects them; this package brings the sockets.
//
// A PUSH socket has one queue for all its connections. A goroutine takes a message out of it for
// each connection that is idle. A PUB socket has a queue for each connection. A SUB socket has one
// queue, and asks for nothing: every message travels to it.
//
// The option BEST-EFFORT of a PUSH socket is not used: with it, mangos also drops messages that
// there is room for.
package nanomsg

import (
	"context"
	"embed"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/mesh"
)

//go:embed page.md
var files embed.FS

// module is the client library; version is the one in go.mod.
const (
	module  = "go.nanomsg.org/mangos/v3"
	version = "v3.4.2"
)

func Definition() driver.Definition {
	return driver.Definition{
		Name:         "nanomsg",
		Title:        "nanomsg",
		Summary:      "Sockets without a server: pipeline and publish/subscribe.",
		Client:       module,
		Capabilities: mesh.Capabilities(),
		New:          func() driver.Config { return &Config{Options: mesh.Defaults(), HWM: 1024} },
		Page:         driver.MustPage(files),
	}
}

// Config holds the driver's settings.
type Config struct {
	mesh.Options
	HWM int `option:"hwm" min:"1" max:"1048576" help:"Messages that a queue of a socket holds. A full PUSH waits; a full PUB drops the new message; a full SUB drops the oldest."`
}

// Validate returns nil: the options' bounds check everything.
func (c *Config) Validate() error { return nil }

// Open returns a Conn without sockets; there is no server to connect to.
func (c *Config) Open(_ context.Context, run driver.Run) (driver.Conn, error) {
	lib := mesh.Library{
		Name: "mangos", Version: version, Guarantee: driver.Buffered,
		Open: func(k mesh.Kind) (mesh.Socket, error) { return open(k, c.HWM) },
	}
	return mesh.Open(lib, run, c.Options, map[string]string{"hwm": strconv.Itoa(c.HWM)})
}

var _ driver.Narrowed = (*Config)(nil)
