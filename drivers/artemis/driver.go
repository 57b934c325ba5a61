// Package artemis drives Apache Artemis by AMQP 1.0. page.md says what weir's terms mean here, and
// package amqp1conn has the protocol. Here is what only Artemis has: its management address
// (https://artemis.apache.org/components/artemis/documentation/latest/management.html).
package artemis

import (
	"context"
	"embed"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/amqp1conn"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "artemis",
		Title:   "Apache Artemis",
		Summary: "Queues of ActiveMQ Artemis, over AMQP 1.0.",
		Client:  "github.com/Azure/go-amqp",
		Capabilities: driver.Capabilities{
			Consume:    true,
			Replicas:   true, // two, for a pair
			Leaders:    true,
			Competing:  true,
			Nack:       true,
			Retains:    true, // a queue keeps its messages
			Settle:     []driver.Settle{driver.SettleEach, driver.SettleAuto},
			Guarantees: []driver.Guarantee{driver.Written, driver.Received, driver.Replicated, driver.Persisted},
			Delivery:   driver.AtLeastOnce,
			Ordering:   driver.PerDestination,
		},
		New: func() driver.Config {
			return &Config{
				Options: amqp1conn.Defaults(), Management: "activemq.management", Datasync: unknown,
				Server: Server{Persistence: "yes", Sync: "yes", MaxSize: -1, FullPolicy: "PAGE", Heap: "256m"},
			}
		},
		Page: page,
	}
}

// unknown is a value of the option datasync.
const unknown = "unknown"

// Config holds the driver's settings.
type Config struct {
	amqp1conn.Options

	Management string `option:"management" help:"Management address of the server (management-address)."`
	Datasync   string `option:"datasync" allowed:"unknown,no,yes" firm:"yes" help:"Whether the server syncs each write of its journal (journal-datasync). The server does not report it."`

	Server Server `option:"server"`
}

// Server holds the settings of a server that weir starts; these are its defaults.
type Server struct {
	Persistence string `option:"persistence" allowed:"no,yes" firm:"yes" help:"Server that weir starts: keep durable messages in a journal."`
	Sync        string `option:"sync" allowed:"no,write,yes" firm:"yes" help:"Server that weir starts: before an answer, write the journal, and with yes sync it."`
	MaxSize     int64  `option:"max-size-bytes" min:"-1" help:"Server that weir starts: bytes of an address in memory above which address-full-policy holds; -1: only those of all addresses count (half of the heap)."`
	FullPolicy  string `option:"address-full-policy" allowed:"PAGE,BLOCK,DROP,FAIL" help:"Server that weir starts: what an address that is full does: page to files, give producers no credit, drop messages or refuse them."`
	Heap        string `option:"heap" help:"Server that weir starts: largest heap, as -Xmx takes it."`
}

// Open connects, within ctx and the option timeout.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	own := *c
	return amqp1conn.Open(ctx, run, &own.Options, &system{&own})
}

// Known implements driver.GuaranteePredictor. The server reports everything except whether it syncs
// its journal. Two nodes are a pair in sync.
func (c *Config) Known(s driver.Servers) driver.Known {
	k := driver.KnownOf(c, "confirm", "durable", "datasync")
	if s.Nodes > 0 {
		k["server.persistence"], k["server.sync"], k["replication"] = c.Server.Persistence, c.Server.Sync, strconv.Itoa(s.Nodes)
	}
	return k
}
