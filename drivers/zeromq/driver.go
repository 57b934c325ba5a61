// Package zeromq drives the sockets of ZeroMQ by zmq4, an implementation in Go.
//
// # What is what here
//
// There is no server. Package mesh opens the sockets of producers and consumers and
// connects them; this package brings the sockets.
//
// # What the client does behind one's back
//
// A PUSH socket has no queue: Send writes to the operating system, to every connection at
// once (mwriter.write in msgio.go). Two consumers would each get every message, so the
// driver refuses a second one. A PUSH socket does not see that its peer has gone: the
// driver gives each connection a PUSH socket of its own.
//
// A PUB socket has one queue for all subscribers, and a goroutine that writes to one after
// the other. It drops what finds the queue full, for all of them. Close does not end that
// goroutine. A PULL or SUB socket reads ten messages ahead, and then no more.
package zeromq

import (
	"context"
	_ "embed" // of the page
	"errors"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/mesh"
)

//go:embed page.md
var page string // what the driver says to a reader; driver.MustPage says how it looks

// module is the client library; version is the one in go.mod.
const (
	module  = "github.com/go-zeromq/zmq4"
	version = "v0.17.0"
)

// Definition returns the driver.
func Definition() driver.Definition {
	can := mesh.Capabilities()
	can.Competing = false
	can.Guarantees = []driver.Guarantee{driver.Buffered, driver.Written}
	return driver.Definition{
		Name:         "zeromq",
		Title:        "ZeroMQ",
		Summary:      "Sockets without a server: pipeline and publish/subscribe.",
		Client:       module,
		Capabilities: can,
		New:          func() driver.Config { return &Config{Options: mesh.Defaults(), HWM: 1024} },
		Page:         driver.MustPage(page),
	}
}

// Config is the driver's settings.
type Config struct {
	mesh.Options
	HWM int `option:"hwm" min:"1" max:"1048576" help:"Messages that the queue of a PUB socket holds for all subscribers; a full one drops the new message. Other sockets have no such limit."`
}

// Validate refuses what the library does not do.
func (c *Config) Validate() error {
	var errs []error
	if c.Transport == "inproc" {
		errs = append(errs, &driver.OptionError{Name: "transport", Err: errors.New("inproc: the client library carries no more than 255 bytes so (ipc, tcp)")})
	}
	if c.Pattern == "pipeline" && c.Bind == "producers" {
		errs = append(errs, &driver.OptionError{Name: "bind", Err: errors.New("producers: a PUSH socket of the client library that is bound does not see a consumer leave (consumers, or pattern: pubsub)")})
	}
	return errors.Join(errs...)
}

// Narrow implements driver.Narrowed.
func (c *Config) Narrow(can driver.Capabilities) driver.Capabilities {
	can = c.Options.Narrow(can)
	can.Competing = false
	return can
}

// Open returns a Conn without sockets; there is no server to connect to.
func (c *Config) Open(_ context.Context, run driver.Run) (driver.Conn, error) {
	lib := mesh.Library{
		Name: "zmq4", Version: version, Guarantee: driver.Buffered,
		Open: func(k mesh.Kind) (mesh.Socket, error) { return open(k, c.HWM) },
	}
	if c.Pattern == "pipeline" {
		lib.Guarantee = driver.Written
	}
	return mesh.Open(lib, run, c.Options, map[string]string{"hwm": strconv.Itoa(c.HWM)})
}

var _ driver.Narrowed = (*Config)(nil)
