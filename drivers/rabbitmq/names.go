package rabbitmq

import (
	"fmt"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/names"
)

// mostName is how long AMQP lets a name be.
const mostName = 255

// name joins parts to a name that AMQP takes; see names.Join.
func name(parts ...string) string { return names.Join(mostName, parts...) }

// A place is what a destination is on the server.
type place struct {
	exchange string // that is published to; "" is the default one
	key      string // that is published with
	binding  string // that subscriptions are bound by
	queue    string // the destination's own: all there is behind the default exchange, and behind others what nobody has subscribed to
	rest     string // the exchange that leads there
}

// place returns what a destination is.
func (c *conn) place(destination string) (place, error) {
	switch {
	case destination == "":
		return place{}, fmt.Errorf("destination without a name: %w", driver.ErrUnsupported)
	case !c.run.Existing:
		own := name("weir", c.run.ID, destination)
		if c.cfg.Exchange == byDefault {
			return place{key: own, queue: own}, nil
		}
		return place{exchange: own, key: own, binding: c.binding(own), queue: own, rest: name("weir", c.run.ID, destination, "rest")}, nil
	case len(destination) > mostName:
		return place{}, fmt.Errorf("name of %d bytes (up to %d): %w", len(destination), mostName, driver.ErrUnsupported)
	case c.cfg.Existing == areQueues:
		return place{key: destination, queue: destination}, nil
	}
	key := destination
	if c.cfg.RoutingKey != "" {
		key = c.cfg.RoutingKey
	}
	return place{exchange: destination, key: key, binding: c.binding(key)}, nil
}

// binding returns the key by which subscriptions are bound to an exchange to which
// messages go with a key.
func (c *conn) binding(key string) string {
	if c.cfg.Exchange == topic && c.cfg.RoutingKey == "" {
		return "#"
	}
	return key
}

// subscription returns the name of a subscription's queue of a destination, which
// on what is not weir's says whose it is.
func (c *conn) subscription(spec driver.ConsumerSpec, destination string) string {
	if spec.Durable {
		return spec.Subscription
	}
	return name("weir", c.run.ID, destination, strings.TrimPrefix(spec.Subscription, c.run.ID+"-"))
}
