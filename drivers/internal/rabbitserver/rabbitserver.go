// Package rabbitserver has what the drivers for RabbitMQ's protocols share: the recipes that
// install and start the server, and its default user.
package rabbitserver

import (
	_ "embed"
	"fmt"
	"slices"
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

// A Version is the major and the minor version of a server.
type Version [2]int

// Release parses a server's version.
func Release(version string) (v Version, err error) {
	if _, err := fmt.Sscanf(version, "%d.%d", &v[0], &v[1]); err != nil {
		return v, fmt.Errorf("%q is not a version of RabbitMQ", version)
	}
	return v, nil
}

// Before reports whether v is older than a version.
func (v Version) Before(major, minor int) bool { return slices.Compare(v[:], []int{major, minor}) < 0 }

// AtLeast returns an error if v is older than the first version that a driver supports.
func (v Version) AtLeast(major, minor int) error {
	if v.Before(major, minor) {
		return fmt.Errorf("%w: RabbitMQ %d.%d is too old (%d.%d or later)", driver.ErrUnsupported, v[0], v[1], major, minor)
	}
	return nil
}

//go:embed recipe.yaml
var recipe string

// Recipe returns the recipe rabbitmq: RabbitMQ 4, which speaks AMQP 0-9-1 and 1.0.
func Recipe() string { return recipe }

// Three returns the recipe rabbitmq3.
func Three() string { return strings.NewReplacer(three...).Replace(recipe) }

// Streams returns the recipe rabbitmq-stream.
func Streams() string { return strings.NewReplacer(streams...).Replace(recipe) }

// three turns the recipe into that of the host's own packages: old text, new text. They have
// RabbitMQ 3 up to Debian 12 and Ubuntu 24.04.
var three = []string{
	"name: rabbitmq\ntitle: RabbitMQ\n",
	"name: rabbitmq3\ntitle: RabbitMQ 3\n",

	"version: 4.0.5", "version: distribution",

	"    release: trixie # most hosts have an older one\n", "",

	`      # Nodes use their own erl to find one another.
      erl: usr/lib/erlang/erts-*/bin/erl
      beam: usr/lib/erlang/erts-*/bin/beam.smp
      erl_child_setup: usr/lib/erlang/erts-*/bin/erl_child_setup
      inet_gethost: usr/lib/erlang/erts-*/bin/inet_gethost
      cpu_sup: usr/lib/erlang/lib/os_mon-*/priv/bin/cpu_sup
      memsup: usr/lib/erlang/lib/os_mon-*/priv/bin/memsup
`, "",

	"image: rabbitmq:4.0.5-management", "image: rabbitmq:3.13.7-management",

	"    amqp1: {user: guest, password: guest, management: rabbitmq}\n", "",

	"      classic-version: \"2\"\n", "",
}

// streams turns the recipe into that of a server that also speaks the stream protocol.
var streams = []string{
	"name: rabbitmq\ntitle: RabbitMQ\n",
	"name: rabbitmq-stream\ntitle: RabbitMQ Streams\n",

	`  max-message-size: {default: "134217728", help: "Largest message, in bytes."}
`,
	`  frame-max: {default: "1048576", help: "Largest frame of the stream protocol, in bytes."}
`,

	"ports: {amqp: 5672, management: 15672, metrics: 15692, dist: 25672}",
	"ports: {amqp: 5672, stream: 5552, management: 15672, metrics: 15692, dist: 25672}",

	"[rabbitmq_management,rabbitmq_prometheus].", "[rabbitmq_management,rabbitmq_prometheus,rabbitmq_stream].",

	`        max_message_size = {{set "max-message-size"}}
`,
	// Clients connect to the node that the server advertises, and loop if that is another node.
	`        stream.listeners.tcp.1 = {{.Bind}}:{{.Port.stream}}
        stream.advertised_host = {{.Reach}}
        stream.advertised_port = {{.Port.stream}}
        stream.frame_max = {{set "frame-max"}}
`,

	`  address: '{{.At "amqp"}}'
  options:
    amqp1: {user: guest, password: guest, management: rabbitmq}
    rabbitmq:
      management: 'http://{{.At "management"}}'
      metrics: 'http://{{.At "metrics"}}'
      classic-version: "2"
ready: {driver: rabbitmq, declare`,
	"  address: '{{.At \"stream\"}}'\nready: {declare",
}
