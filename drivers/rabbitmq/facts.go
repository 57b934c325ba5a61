package rabbitmq

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/settings"
)

// Facts asks the server: for name and version by AMQP, and for the running nodes through the
// management plugin, if there is one.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f := driver.Facts{Name: "RabbitMQ", Nodes: len(c.addresses), Settings: map[string]string{
		"exchange": c.cfg.Exchange, "delivery-mode": c.cfg.DeliveryMode, "confirms": strconv.FormatBool(c.cfg.Confirm), "vhost": c.cfg.Vhost,
		"mandatory": strconv.FormatBool(c.cfg.Mandatory),
	}}
	if c.run.Existing {
		f.Settings["exchange"] = "existing"
	}
	err := c.ask(ctx, func(*client.Channel) error {
		f.Version = c.admin.link.property("version")
		f.Name = cmp.Or(c.admin.link.property("product"), f.Name)
		return nil
	})
	if err == nil && c.http != nil {
		f.Nodes, err = c.http.nodes(ctx)
	}
	if err != nil {
		return f, err
	}
	kinds := c.kinds.All()
	switch {
	case len(kinds) > 0:
	case c.run.Existing:
		kinds[""] = queueKind{} // no producer or consumer has looked yet
	default: // before anything was declared
		kinds[""] = c.kind(1)
	}
	set := settings.Values{}
	for d, k := range kinds {
		k = c.storage(ctx, d, k)
		f.Confirms = f.Confirms.Weaker(c.confirms(k))
		set.Add("x-queue-type", cmp.Or(k.kind, "unknown"))
		set.Add("durable", strconv.FormatBool(k.durable))
		switch k.kind {
		case classic:
			set.Add("x-queue-version", cmp.Or(k.version, "unknown"))
		case quorum:
			set.Add("members", strconv.Itoa(k.replicas))
		}
	}
	if c.http != nil && !c.run.Existing { // weir kills only its own servers
		if f.Leaders, err = c.http.leaders(ctx, c.cfg.Vhost, name("weir", c.run.ID, "")); err != nil {
			return f, err
		}
	}
	if c.http != nil {
		if f.Discards, err = c.http.discards(ctx, c.cfg.Vhost, c.queues(kinds)); err != nil {
			return f, err
		}
	} else if c.cfg.MaxLength > 0 && !c.run.Existing {
		f.Discards = (&limited{Arguments: map[string]any{"x-max-length": c.cfg.MaxLength, "x-overflow": c.cfg.Overflow}}).discards("", nil)
	}
	f.Discarded, _ = c.metrics.discarded(ctx) // the total is unknown if a node is down
	set.Into(f.Settings)
	// A full queue drops confirmed messages, or rejects new ones. That is known only for queues
	// that this run created.
	if c.cfg.MaxLength > 0 && !c.run.Existing {
		f.Settings["x-max-length"], f.Settings["x-overflow"] = strconv.FormatInt(c.cfg.MaxLength, 10), c.cfg.Overflow
	}
	return f, nil
}

// queues returns a pattern for the names of the run's queues, as far as they are known.
func (c *conn) queues(kinds map[string]queueKind) string {
	all := []string{"^" + regexp.QuoteMeta(name("weir", c.run.ID, ""))}
	for d := range kinds {
		if p, err := c.place(d); err == nil && c.run.Existing && p.queue != "" {
			all = append(all, "^"+regexp.QuoteMeta(p.queue)+"$")
		}
	}
	return strings.Join(all, "|")
}

// storage returns a kind updated with a classic queue's storage version, if that matters.
func (c *conn) storage(ctx context.Context, destination string, k queueKind) queueKind {
	switch {
	case k.kind != classic || k.version != "" || destination == "":
		return k
	case c.onlyVersion() != "":
		k.version = c.onlyVersion()
	case c.http == nil || c.confirms(queueKind{kind: classic, durable: k.durable, version: "1"}).Guarantee != driver.Persisted:
		return k
	default:
		p, err := c.place(destination)
		if err != nil || p.queue == "" {
			return k
		}
		seen, err := c.http.queue(ctx, c.cfg.Vhost, p.queue)
		if err != nil || seen.version == "" {
			return k
		}
		k.version = seen.version
	}
	c.kinds.Note(destination, k)
	return k
}

// confirms returns what a confirmation means for a kind of queue.
func (c *conn) confirms(k queueKind) driver.Confirms {
	if c.lavinMQ { // the other settings mean what they say of RabbitMQ alone
		return page.Confirmations.Of(driver.KnownOf(&c.cfg, "confirm"))
	}
	known := c.cfg.known(k)
	known["version"] = fmt.Sprintf("%d.%d", c.release[0], c.release[1])
	return page.Confirmations.Of(known)
}

func (c *Config) known(k queueKind) driver.Known {
	known := driver.KnownOf(c, "confirm", "delivery-mode")
	known["queue"], known["durable"], known["replication"] = k.kind, strconv.FormatBool(k.durable), strconv.Itoa(k.replicas)
	if k.version != "" || k.kind != classic {
		known["classic-version"] = k.version
	}
	return known
}

// Known implements driver.GuaranteePredictor. The host's packages may decide the server's version.
func (c *Config) Known(s driver.Servers) driver.Known {
	if s.Nodes == 0 {
		return driver.KnownOf(c, "confirm") // the existing queues decide the rest
	}
	k := c.queueKind(s.Replicas)
	if k.kind == classic && c.ClassicVersion != server {
		k.version = c.ClassicVersion
	}
	return c.known(k)
}

// Backlog implements driver.Backlogger: ready messages, as reported by the server, plus messages
// sent to this Conn's consumers and not settled, over all their destinations. AMQP does not reveal
// messages held by other consumers.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	before, ready := c.held(subscription), uint64(0)
	c.mu.Lock()
	durable := c.durable[subscription]
	c.mu.Unlock()
	err := c.ask(ctx, func(ch *client.Channel) error {
		for _, d := range destinations {
			p, err := c.place(d)
			if err != nil {
				return err
			}
			q := p.queue
			if p.exchange != "" {
				q = c.subscriptionQueue(subscription, d, durable)
			}
			has, err := ch.QueueDeclarePassive(q, c.cfg.Durable, false, false, false, nil)
			if err != nil {
				return err
			}
			ready += uint64(has.Messages)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return ready + uint64(max(0, before, c.held(subscription))), nil
}

// held returns the number of unsettled messages at a subscription's consumers.
func (c *conn) held(subscription string) (n int64) {
	for _, s := range known.Having(&c.sessions, subscription) {
		n += s.came.Load() - s.settled.Load()
	}
	return n
}
