// Package zeromq drives the sockets of ZeroMQ: by zmq4, an implementation in Go, or built with the
// tag libzmq by the C library of ZeroMQ's makers. page.md says what weir's terms mean here, and how
// the two differ. Package mesh opens the sockets of producers and consumers and connects them; this
// package brings the sockets.
//
// A PUSH socket of zmq4 has no queue: Send writes to the operating system, to every connection at
// once (mwriter.write in msgio.go), and does not see that its peer has gone: the driver gives each
// connection a PUSH socket of its own. A PUB socket has a goroutine that writes to one subscriber
// after the other. Close does not end that goroutine. A PULL or SUB socket reads ten messages ahead,
// and then no more.
package zeromq

import (
	"context"
	"embed"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/mesh"
)

//go:embed page.md
var files embed.FS

var page = driver.MustPage(files)

func Definition() driver.Definition {
	return driver.Definition{
		Name:         "zeromq",
		Title:        "ZeroMQ",
		Summary:      "Sockets without a server: pipeline and publish/subscribe.",
		Client:       module,
		Capabilities: capabilities(),
		New:          func() driver.Config { return &Config{Options: mesh.Defaults(), HWM: 1024} },
		Page:         page,
	}
}

// Config holds the driver's settings.
type Config struct {
	mesh.Options
	HWM int `option:"hwm" min:"1" max:"1048576" help:"Messages that a queue of a socket holds. The queue of a PUB socket drops what finds it full. With zmq4 no other socket has a queue; with libzmq each has one for each connection, and a PUSH socket waits for room."`
}

// Open returns a Conn without sockets; there is no server to connect to.
func (c *Config) Open(_ context.Context, run driver.Run) (driver.Conn, error) {
	lib := mesh.Library{
		Name: library, Version: version(), Guarantee: page.Confirmations.Of(c.Known(driver.Servers{})).Guarantee,
		Open: func(k mesh.Kind) (mesh.Socket, error) { return open(k, c.HWM) },
	}
	return mesh.Open(lib, run, c.Options, map[string]string{"hwm": strconv.Itoa(c.HWM)})
}

// Known implements driver.GuaranteePredictor. A message is first in a queue of libzmq's sockets.
func (c *Config) Known(driver.Servers) driver.Known {
	return driver.Known{"pattern": c.Pattern, "library": library}
}

var _ driver.Narrowed = (*Config)(nil)
