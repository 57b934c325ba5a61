// Package activemq drives Apache ActiveMQ Classic by AMQP 1.0.
//
// Package amqp1conn has the protocol. Here is what only ActiveMQ has: its plugin
// statisticsBrokerPlugin, by which weir counts the messages of a queue
// (https://activemq.apache.org/components/classic/documentation/statisticsplugin). A
// browser of a queue would count, too, but the server never tells one that it has seen
// all.
//
// # What a confirmation means
//
// The server settles a durable message when its store has it, or when a consumer has
// acknowledged it before. Over AMQP it does not report its store: the option store states
// it.
package activemq

import (
	"context"
	"embed"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/amqp1conn"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "activemq",
		Title:   "Apache ActiveMQ Classic",
		Summary: "Queues of ActiveMQ Classic, over AMQP 1.0.",
		Client:  "github.com/Azure/go-amqp",
		Capabilities: driver.Capabilities{
			Consume:    true,
			Competing:  true,
			Nack:       true,
			Retains:    true, // a queue keeps its messages
			Settle:     []driver.Settle{driver.SettleEach, driver.SettleAuto},
			Guarantees: []driver.Guarantee{driver.Written, driver.Received, driver.Persisted},
			Delivery:   driver.AtLeastOnce,
			Ordering:   driver.PerDestination,
		},
		New: func() driver.Config {
			return &Config{
				Options: amqp1conn.Defaults(), Store: "unknown",
				Server: Server{Persistence: "yes", Sync: "always", Memory: "1 gb", Store: "100 gb", Heap: "256m"},
			}
		},
		Page: page,
	}
}

// Values of the option store.
const (
	memory  = "memory"
	written = "written"
	synced  = "synced"
)

// Config holds the driver's settings.
type Config struct {
	amqp1conn.Options

	Store string `option:"store" allowed:"unknown,memory,written,synced" firm:"synced" help:"Where the server has a durable message when it settles it: in memory, written to a file, or synced to the disk. The server does not report it."`

	Server Server `option:"server"`
}

// Server holds the settings of a server that weir starts; these are its defaults.
type Server struct {
	Persistence string `option:"persistence" allowed:"no,yes" firm:"yes" help:"Server that weir starts: keep durable messages in files (KahaDB)."`
	Sync        string `option:"sync" allowed:"always,periodic,never" firm:"yes" help:"Server that weir starts: when KahaDB syncs its journal (journalDiskSyncStrategy)."`
	Memory      string `option:"memory-usage" help:"Server that weir starts: memory of all messages above which producers wait (memoryUsage limit); at most 70 % of the heap."`
	Store       string `option:"store-usage" help:"Server that weir starts: files of all messages above which producers wait (storeUsage limit). One file has 32 MiB."`
	Heap        string `option:"heap" help:"Server that weir starts: largest heap, as -Xmx takes it."`
}

// Open connects, within ctx and the option timeout.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	own := *c
	return amqp1conn.Open(ctx, run, &own.Options, &system{&own})
}

// Known implements driver.GuaranteePredictor. The server does not report where it keeps a message,
// so the option store states it; for a server that weir starts, the recipe sets that option.
func (c *Config) Known(driver.Servers) driver.Known {
	k := driver.KnownOf(c, "confirm", "durable")
	k["server.persistence"], k["server.sync"] = c.Store, c.Store
	switch c.Store {
	case memory:
		k["server.persistence"] = "no"
	case written:
		k["server.persistence"], k["server.sync"] = "yes", "periodic"
	case synced:
		k["server.persistence"], k["server.sync"] = "yes", "always"
	}
	return k
}
