package cli

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/scenario"
)

// Users with NATS_URL set may think that it is used. No hint if it is used, or if weir starts no server.
func TestHintForUnusedServerVariable(t *testing.T) {
	for start, want := range map[scenario.Start]string{
		scenario.StartEmbedded: "weir starts a server of its own, not the one that NATS_URL names: --address '${env:NATS_URL}' uses that\n",
		scenario.StartNone:     "",
	} {
		var said strings.Builder
		e := &env{World: World{Stderr: &said, Env: func(name string) (string, bool) { return "nats://h", name == "NATS_URL" }}}
		for _, d := range all.Definitions() {
			if d.Name == "chan" || d.Name == "nats" {
				e.overlooked([]*scenario.Scenario{{System: scenario.System{Definition: d, Start: start}}})
			}
		}
		if said.String() != want {
			t.Errorf("start %v: %q; want %q", start, said.String(), want)
		}
	}
}

// For every driver, the line below the error says how to start a server, if weir knows how and no address
// is given.
func TestUnreachableSystemSuggestsHowToStartIt(t *testing.T) {
	e := &env{World: World{Env: func(name string) (string, bool) { return "kept://secret@h", name == "AMQP_URL" }}}
	address := []scenario.Option{{Name: "address", Values: []string{"h:1"}}}
	for name, want := range map[string]struct{ open, given string }{
		"kafka":     {"nothing answers at the default address of kafka: add --start process to have weir start a server, or --address for a server of yours", "check the address, and that a server runs there; --start process in place of the address has weir start one"},
		"nats":      {"nothing answers at the default address of nats: add --start embedded to have weir start a server, or --address for a server of yours", "check the address, and that a server runs there; without an address or start, weir starts nats itself"},
		"kestrel":   {"nothing answers at the default address of kestrel: --address names another", "check the address, and that a server runs there"},
		"rabbitmq":  {"AMQP_URL is set: --address '${env:AMQP_URL}' uses it, with its user and password", "check the address, and that a server runs there; --start process in place of the address has weir start one"},
		"exec":      {"", ""}, // has no address
		"jetstream": {"nothing answers at the default address of jetstream: add --start embedded to have weir start a server, or --address for a server of yours", "check the address, and that a server runs there; without an address or start, weir starts jetstream itself"},
	} {
		for _, d := range all.Definitions() {
			if d.Name != name {
				continue
			}
			if got := e.absent(&scenario.System{Definition: d}); got != want.open {
				t.Errorf("%s: %q; want %q", name, got, want.open)
			}
			if got := e.absent(&scenario.System{Definition: d, Options: address}); got != want.given {
				t.Errorf("%s with an address: %q; want %q", name, got, want.given)
			}
			if got := e.absent(&scenario.System{Definition: d, Start: scenario.StartProcess}); got != "" {
				t.Errorf("%s that weir started: %q", name, got)
			}
		}
	}
}
