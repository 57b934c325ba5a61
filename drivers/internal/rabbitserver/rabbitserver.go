// Package rabbitserver holds what the drivers of RabbitMQ's protocols share: how the server
// is had and started, and its default user.
package rabbitserver

import (
	_ "embed"
	"strings"

	"github.com/weirmq/weir/driver"
)

// Guest is the server's default user, and the password of that user.
const Guest = "guest"

// Password returns the password of a user: the one given, or that of Guest.
func Password(user string, given driver.Secret) string {
	if p := given.Reveal(); p != "" || user != Guest {
		return p
	}
	return Guest
}

//go:embed recipe.yaml
var recipe string

// Recipe returns Definition.Recipe of a driver that speaks AMQP 0-9-1: rabbitmq. It has
// the host's version of the server, and after it RabbitMQ 4.
func Recipe() []byte { return []byte(recipe + "---\n" + Four()) }

// Four returns rabbitmq4 alone, for a driver that speaks AMQP 1.0.
func Four() string { return strings.NewReplacer(four...).Replace(recipe) }

// four are changes that turn the recipe into that of RabbitMQ 4, from a newer release of
// Debian than most hosts have. It stores classic queues in one way only.
var four = []string{
	"name: rabbitmq\ntitle: RabbitMQ\n",
	"name: rabbitmq4\ntitle: RabbitMQ 4\n",

	"version: distribution", "version: 4.0.5",

	"    packages: [rabbitmq-server]\n",
	"    packages: [rabbitmq-server]\n    release: trixie\n",

	"      rabbitmqctl: usr/lib",
	// Nodes look for one another by an erl of their own.
	`      erl: usr/lib/erlang/erts-*/bin/erl
      beam: usr/lib/erlang/erts-*/bin/beam.smp
      erl_child_setup: usr/lib/erlang/erts-*/bin/erl_child_setup
      inet_gethost: usr/lib/erlang/erts-*/bin/inet_gethost
      cpu_sup: usr/lib/erlang/lib/os_mon-*/priv/bin/cpu_sup
      memsup: usr/lib/erlang/lib/os_mon-*/priv/bin/memsup
      rabbitmqctl: usr/lib`,

	`  classic-version: {default: "1", allowed: ["1", "2"], help: "How classic queues store messages; 2 never syncs them."}
`,
	`  classic-version: {default: "2", allowed: ["2"], help: "How classic queues store messages: RabbitMQ 4 has version 2 only, and never syncs them."}
`,

	"image: rabbitmq:3.13.7-management", "image: rabbitmq:4.0.5-management",

	"  options:\n    rabbitmq:\n",
	"  options:\n    amqp1: {user: guest, password: guest, management: rabbitmq}\n    rabbitmq:\n",

	"ready: {declare: true", "ready: {driver: rabbitmq, declare: true",
}

// changes turn the recipe into that of a server that speaks the stream protocol, too: what
// stands there, and instead of it.
var changes = []string{
	"name: rabbitmq\ntitle: RabbitMQ\n",
	"name: rabbitmq-stream\ntitle: RabbitMQ Streams\n",

	`  max-message-size: {default: "134217728", help: "Largest message, in bytes."}
  classic-version: {default: "1", allowed: ["1", "2"], help: "How classic queues store messages; 2 never syncs them."}
`,
	`  frame-max: {default: "1048576", help: "Largest frame of the stream protocol, in bytes."}
`,

	"ports: {amqp: 5672, management: 15672, metrics: 15692, dist: 25672}",
	"ports: {amqp: 5672, stream: 5552, management: 15672, metrics: 15692, dist: 25672}",

	"[rabbitmq_management,rabbitmq_prometheus].", "[rabbitmq_management,rabbitmq_prometheus,rabbitmq_stream].",

	`        max_message_size = {{set "max-message-size"}}
        classic_queue.default_version = {{set "classic-version"}}
`,
	// Clients connect to the node that the server advertises, and loop where that is another.
	`        stream.listeners.tcp.1 = {{.Bind}}:{{.Port.stream}}
        stream.advertised_host = {{.Reach}}
        stream.advertised_port = {{.Port.stream}}
        stream.frame_max = {{set "frame-max"}}
`,

	`  address: '{{.At "amqp"}}'
  options:
    rabbitmq:
      management: 'http://{{.At "management"}}'
      metrics: 'http://{{.At "metrics"}}'
      classic-version: '{{set "classic-version"}}'
`,
	"  address: '{{.At \"stream\"}}'\n",
}

// Streams returns Definition.Recipe of a driver that speaks the stream protocol:
// rabbitmq-stream.
func Streams() []byte { return []byte(strings.NewReplacer(changes...).Replace(recipe)) }
