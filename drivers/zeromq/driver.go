// Package zeromq drives the sockets of ZeroMQ: by zmq4, an implementation in Go, or built
// with the tag libzmq by the C library of ZeroMQ's makers.
//
// # Terms
//
// There is no server. Package mesh opens the sockets of producers and consumers and
// connects them; this package brings the sockets.
//
// # How zmq4 behaves
//
// A PUSH socket has no queue: Send writes to the operating system, to every connection at
// once (mwriter.write in msgio.go). Two consumers would each get every message, so the
// driver refuses a second one. A PUSH socket does not see that its peer has gone: the
// driver gives each connection a PUSH socket of its own.
//
// A PUB socket has one queue for all subscribers, and a goroutine that writes to one after
// the other. It drops what finds the queue full, for all of them. Close does not end that
// goroutine. A PULL or SUB socket reads ten messages ahead, and then no more.
//
// # What libzmq does
//
// Each socket has a queue for each connection, at both ends. A PUSH socket shares messages
// among its connections and waits when all queues are full. A PUB socket drops a message
// for each connection with a full queue. It learns late that a queue has room again, so a
// quick subscriber can lose messages, too, where hwm is small. What is in a queue when its
// connection ends is gone.
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
