// Package amqp1 drives any AMQP 1.0 broker that manages its queues by AMQP.
//
// Package amqp1conn has the protocol. AMQP 1.0 itself has no request that makes, counts or
// removes a queue. Here is the management that weir needs, by the OASIS draft AMQP
// Management, as Apache Qpid Broker-J has it
// (https://qpid.apache.org/releases/qpid-broker-j-10.1.0/book/Java-Broker-Management-Channel-AMQP-Intrinsic.html),
// and by HTTP over AMQP, as RabbitMQ 4 has it (https://www.rabbitmq.com/docs/amqp#topology).
// Without management the driver only sends.
//
// # What a confirmation means
//
// The broker has accepted the message, and answers for it from then on. The protocol does
// not tell where the broker keeps the message: the option store states it.
package amqp1

import (
	"context"
	"embed"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/amqp1conn"
	"github.com/weirmq/weir/drivers/internal/rabbitserver"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files, rabbitserver.Recipe())

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "amqp1",
		Title:   "AMQP 1.0 broker",
		Summary: "Queues of any AMQP 1.0 broker; with consumers, of Apache Qpid Broker-J and RabbitMQ 4.",
		Client:  "github.com/Azure/go-amqp",
		Capabilities: driver.Capabilities{
			Consume:    true,
			Replicas:   true, // for quorum queues
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
				Options: amqp1conn.Defaults(), Management: qpid, Store: "unknown", QueueType: quorum,
				Server: Server{Persistence: "yes", Heap: "256m"},
			}
		},
		Page: page,
	}
}

// Values of options.
const (
	none    = "none"
	qpid    = "qpid"
	rabbit4 = "rabbitmq"
	memory  = "memory"
)

// Config holds the driver's settings.
type Config struct {
	amqp1conn.Options

	Management string `option:"management" allowed:"qpid,rabbitmq,none" help:"How the broker makes, counts and removes queues: as Apache Qpid Broker-J does, as RabbitMQ 4 does, or not by AMQP. With none, the broker makes a queue for a link or has it already, and weir only sends."`
	Store      string `option:"store" allowed:"unknown,memory,written,synced" firm:"synced" help:"Where the broker has a durable message when it accepts it: in memory, written to a file, or synced to the disk. The protocol does not tell it."`

	QueueType string `option:"queue-type" allowed:"quorum,classic" help:"Kind of the queues of RabbitMQ (x-queue-type)."`

	Server Server `option:"server"`
}

// Server holds the settings of a server that weir starts; these are its defaults.
type Server struct {
	Persistence string `option:"persistence" allowed:"no,yes" firm:"yes" help:"Server that weir starts: keep durable messages in files (BDB)."`
	Heap        string `option:"heap" help:"Server that weir starts: largest heap, as -Xmx takes it."`
}

// Open connects, within ctx and the option timeout.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	own := *c
	if own.Management == rabbit4 {
		return amqp1conn.Open(ctx, run, &own.Options, &rabbit{&own})
	}
	return amqp1conn.Open(ctx, run, &own.Options, &system{&own})
}

// Narrow implements driver.Narrowed: the backlog is available only through management, and only
// quorum queues have replicas.
func (c *Config) Narrow(can driver.Capabilities) driver.Capabilities {
	can.Replicas = c.Management == rabbit4 && c.QueueType == quorum
	if c.Management == none {
		can.Consume, can.Competing, can.Nack, can.Retains, can.Settle = false, false, false, false, nil
	}
	return can
}

// Known implements driver.GuaranteePredictor. The protocol does not report where a message is
// stored, so the option store states it; RabbitMQ reports the queue type.
func (c *Config) Known(s driver.Servers) driver.Known {
	k := driver.KnownOf(c, "confirm", "management", "durable", "store")
	if s.Nodes == 0 {
		return k
	}
	k["queue-type"], k["replication"] = c.QueueType, strconv.Itoa(s.Replicas)
	if c.Server.Persistence == "no" {
		k["store"] = memory
	}
	return k
}
