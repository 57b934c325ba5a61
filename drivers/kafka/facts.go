package kafka

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weirmq/weir/driver"
)

// transactions is the topic with the brokers' transaction state.
const transactions = "__transaction_state"

// Facts reads the settings of the topics, and of the transaction log if transactions are used, from
// every broker that holds them.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f, err := c.Hold.Facts(ctx, page.Confirmations)
	if err != nil || c.cfg.Transaction == 0 {
		return f, err
	}
	log, err := c.Link.Facts(ctx, page.Confirmations, "all", []string{transactions})
	if err != nil {
		return f, fmt.Errorf("log of transactions: %w", err)
	}
	f.Confirms = f.Confirms.Weaker(log.Confirms)
	f.Settings["transaction"], f.Settings["isolation.level"] = strconv.Itoa(c.cfg.Transaction), "read_committed"
	for _, s := range []string{"replication.factor", "min.insync.replicas", "flush.messages"} {
		f.Settings[transactions+" "+s] = log.Settings[s]
	}
	return f, nil
}

// Known implements driver.GuaranteePredictor. If the transaction log guarantees less than the
// topics, it decides.
func (c *Config) Known(s driver.Servers) driver.Known {
	k := c.Common.Known(s)
	if log := c.KnownLog(s); c.Transaction > 0 && s.Nodes > 0 && page.Confirmations.AtMost(log).Guarantee < page.Confirmations.AtMost(k).Guarantee {
		return log
	}
	return k
}

// Backlog implements driver.Backlogger: messages in the log after the group's committed positions.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	return c.Behind(ctx, subscription, destinations, nil)
}
