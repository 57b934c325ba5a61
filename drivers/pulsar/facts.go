package pulsar

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/httpapi"
)

// Facts asks the web services for the version, the bookies, and the quorums of the topics declared
// or opened; before that, of a topic that weir would create.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f := driver.Facts{Name: "Pulsar", Settings: map[string]string{
		"journalSyncData": c.cfg.JournalSync + " (option journal-sync)", "subscription-type": c.cfg.Type, "batching": strconv.FormatBool(c.cfg.Batching),
	}}
	if err := c.admin.ask(ctx, http.MethodGet, "/brokers/version", nil, nil, &f.Version); err != nil {
		return f, err
	}
	var brokers []string
	if err := c.admin.ask(ctx, http.MethodGet, "/brokers", nil, nil, &brokers); err != nil && !errors.Is(err, driver.ErrAuth) {
		return f, err
	}
	var all struct{ Bookies []struct{ BookieID string } }
	if err := c.admin.ask(ctx, http.MethodGet, "/bookies/all", nil, nil, &all); err != nil && !errors.Is(err, driver.ErrAuth) {
		return f, err
	}
	f.Nodes = max(1, len(brokers), len(all.Bookies))
	f.Settings["brokers"], f.Settings["bookies"] = strconv.Itoa(len(brokers)), strconv.Itoa(len(all.Bookies))
	least, err := c.quorums(ctx)
	if err != nil {
		return f, err
	}
	f.Settings["bookkeeperEnsemble"] = strconv.Itoa(least.Ensemble)
	f.Settings["bookkeeperWriteQuorum"] = strconv.Itoa(least.Write)
	f.Settings["bookkeeperAckQuorum"] = strconv.Itoa(least.Ack)
	f.Confirms = page.Confirmations.Of(c.cfg.known(least))
	short, cancel := context.WithTimeout(ctx, discardLimit)
	defer cancel()
	f.Discards, f.Discarded, err = c.discards(short)
	if short.Err() != nil && ctx.Err() == nil || errors.As(err, new(*httpapi.Refusal)) {
		err = nil // unknown: many topics, a topic that was deleted, or missing permissions
	}
	return f, err
}

// discardLimit limits how long questions about dropped messages may take.
const discardLimit = time.Second

// eviction is the policy of backlog quotas that drops messages.
const eviction = "consumer_backlog_eviction"

// discards returns the active settings by which the brokers drop messages of the topics, and how
// many they dropped. They count what expired, and not what they evicted.
func (c *conn) discards(ctx context.Context) (all []string, totals []driver.Discarded, err error) {
	expired := driver.Discarded{Counter: "totalMsgExpired of all subscriptions, in entries"}
	for _, t := range c.topics.All() {
		has, err := c.admin.subscriptions(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range has {
			expired.Messages += s.Expired
		}
		ttl, quotas, err := c.admin.policies(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		if ttl > 0 {
			all = append(all, fmt.Sprintf("messages expire after %d s (message TTL)", ttl))
		}
		for kind, q := range quotas {
			if limit := max(q.Size, q.Seconds); q.Policy == eviction && limit > 0 {
				all = append(all, fmt.Sprintf("subscriptions lose what is above their backlog quota (%s %d, %s)", kind, limit, eviction))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), []driver.Discarded{expired}, nil
}

// quorums returns the quorums of the least durable topic. It is the zero value if the credentials
// do not permit the request.
func (c *conn) quorums(ctx context.Context) (least quorums, err error) {
	all := slices.Collect(maps.Values(c.topics.All()))
	if len(all) == 0 {
		least, err = c.admin.preset(ctx, c.cfg.Namespace)
	}
	for i, t := range all {
		q, e := c.admin.of(ctx, t)
		if e != nil {
			err = e
			break
		}
		if means := page.Confirmations.Of(c.cfg.known(q)); i == 0 || means.Weaker(page.Confirmations.Of(c.cfg.known(least))) == means {
			least = q
		}
	}
	if errors.Is(err, driver.ErrAuth) {
		return quorums{}, nil
	}
	return least, err
}

// Known implements driver.GuaranteePredictor. The brokers do not report whether the bookies sync,
// so the option journal-sync states it. A single server has one bookie; a cluster has the bookies
// in its settings.
func (c *Config) Known(s driver.Servers) driver.Known {
	switch s.Nodes {
	case 0:
		return driver.Known{"server.sync": c.JournalSync}
	case 1:
		return c.known(quorums{1, 1, 1})
	}
	return c.known(quorums{Write: c.Server.Write, Ack: c.Server.Ack})
}

// known returns a topic's settings: a message is in the journals of an ack quorum of bookies, out
// of those that should have it (the write quorum).
func (c *Config) known(q quorums) driver.Known {
	return driver.Known{"server.sync": c.JournalSync, "server.write-quorum": strconv.Itoa(q.Write), "server.ack-quorum": driver.Of(q.Ack, q.Write)}
}
