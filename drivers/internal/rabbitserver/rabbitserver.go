// Package rabbitserver has what the drivers for RabbitMQ's protocols share: the recipes that
// install and start the server, and its default user.
package rabbitserver

import (
	_ "embed"
	"strings"

	"github.com/weirmq/weir/driver"
)

// Guest is the server's default user, and that user's password.
const Guest = "guest"

// Password returns a user's password: the given one, or Guest.
func Password(user string, given driver.Secret) string {
	if p := given.Reveal(); p != "" || user != Guest {
		return p
	}
	return Guest
}

//go:embed recipe.yaml
var recipe string

// Recipe returns the Definition.Recipe of an AMQP 0-9-1 driver: rabbitmq with the host's version of
// the server, then RabbitMQ 4.
func Recipe() []byte { return []byte(recipe + "---\n" + Four()) }

// Four returns rabbitmq4 alone, for an AMQP 1.0 driver.
func Four() string { return strings.NewReplacer(four...).Replace(recipe) }

// four turns the recipe into that of RabbitMQ 4, from a Debian release newer than most hosts have.
// RabbitMQ 4 has only one storage format for classic queues.
var four = []string{
	"name: rabbitmq\ntitle: RabbitMQ\n",
	"name: rabbitmq4\ntitle: RabbitMQ 4\n",

	"version: distribution", "version: 4.0.5",

	"    packages: [rabbitmq-server]\n",
	"    packages: [rabbitmq-server]\n    release: trixie\n",

	"      rabbitmqctl: usr/lib",
	// Nodes use their own erl to find one another.
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

// changes turns the recipe into that of a server that also speaks the stream protocol: old text,
// new text.
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
	// Clients connect to the node that the server advertises, and loop if that is another node.
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

// Streams returns the Definition.Recipe of a stream protocol driver: rabbitmq-stream.
func Streams() []byte { return []byte(strings.NewReplacer(changes...).Replace(recipe)) }
