package pulsar

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/weirmq/weir/driver"
)

// Facts asks the web services for the version, the bookies, and the quorums of the topics
// that were declared or opened; before that, those of a topic that weir would make.
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
	f.Confirms = least.confirms(c.cfg.JournalSync == "yes")
	return f, nil
}

// quorums returns those of the topic that is stored with the least care. It is the zero
// value where the credentials do not allow to ask.
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
		if i == 0 || q.confirms(true).Weaker(least.confirms(true)) == q.confirms(true) {
			least = q
		}
	}
	if errors.Is(err, driver.ErrAuth) {
		return quorums{}, nil
	}
	return least, err
}

// Foresee implements driver.Foreseer. One server has one bookie; the cluster's have what
// its settings say.
func (c *Config) Foresee(s driver.Servers) driver.Guarantee {
	q := quorums{1, 1, 1}
	if s.Nodes > 1 {
		q.Write, q.Ack = c.Server.Write, c.Server.Ack
	}
	return q.confirms(c.JournalSync == "yes").Guarantee
}

// AtMost implements driver.Ceiling. The brokers do not tell whether the bookies sync.
func (c *Config) AtMost(bool) driver.Guarantee {
	return quorums{3, 3, 2}.confirms(c.JournalSync == "yes").Guarantee
}

// confirms returns what a confirmation means: a message is in the journals of as many
// bookies as the ack quorum, of all that are to have it (the write quorum).
// (https://pulsar.apache.org/docs/4.0.x/administration-zk-bk/#configure-bookkeeper-persistence-policies)
func (q quorums) confirms(synced bool) driver.Confirms {
	c := driver.Confirms{Guarantee: driver.Received, Copies: driver.CopiesOne, Stable: driver.StableOS}
	if synced {
		c.Stable = driver.StableFsync
	}
	most := 2*q.Ack > q.Write && q.Ack > 0
	switch {
	case q.Write > 1 && q.Ack == q.Write:
		c.Copies = driver.CopiesAll
	case q.Write > 1 && most:
		c.Copies = driver.CopiesQuorum
	}
	switch {
	case most && synced:
		c.Guarantee = driver.Persisted
	case q.Write > 1 && most:
		c.Guarantee = driver.Replicated
	}
	return c
}
