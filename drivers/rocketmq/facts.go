package rocketmq

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/settings"
)

// shown lists the broker settings that appear in the facts
// (https://github.com/apache/rocketmq/blob/rocketmq-all-5.5.0/docs/en/Configuration_System.md).
var shown = []string{
	"allAckInSyncStateSet", "brokerRole", "enableAutoInSyncReplicas", "enableControllerMode", "enableSlaveActingMaster", reserved,
	"flushDiskType", "flushIntervalCommitLog", "inSyncReplicas", "maxMessageSize", "minInSyncReplicas", "sendMessageThreadPoolNums", "slaveTimeout",
	"syncFlushTimeout", "transientStorePoolEnable", "waitTimeMillsInSendQueue",
}

// Facts asks a name server for the brokers, and the masters for their version and settings. The
// weakest master with the topics determines what a confirmation means; without topics, the weakest
// of all.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f := driver.Facts{Name: "RocketMQ", Settings: map[string]string{}}
	all, err := c.cfg.brokers(ctx)
	if err != nil {
		return f, err
	}
	if len(all) == 0 {
		return f, errNoBroker
	}
	used, routes := map[string]bool{}, map[string]route{}
	for _, t := range slices.Sorted(maps.Values(c.topics.All())) {
		r, err := c.cfg.route(ctx, t)
		if err != nil {
			return f, words.Unreachable(err)
		}
		routes[t] = r
		for _, q := range r.queues {
			used[q.broker] = true
			f.Leaders = append(f.Leaders, r.brokers[q.broker].master())
		}
	}
	set := settings.Values{}
	for _, b := range all {
		f.Nodes += len(b.Servers)
		if len(used) > 0 && !used[b.Name] {
			continue
		}
		s, version, err := c.settings(ctx, b)
		if err != nil {
			return f, fmt.Errorf("broker %s: %w", b.Name, err)
		}
		f.Version = version
		f.Confirms = f.Confirms.Weaker(page.Confirmations.Of(decide(s, len(b.Servers))))
		for _, name := range shown {
			if v, ok := s[name]; ok {
				set.Add(name, v)
			}
		}
		if hours, err := strconv.Atoi(s[reserved]); err == nil && hours < usualReserve {
			f.Discards = append(f.Discards, fmt.Sprintf("files with messages are deleted after %d h, read or not (%s)", hours, reserved))
		}
	}
	set.Into(f.Settings)
	f.Discards = slices.Compact(f.Discards)
	f.Discarded = c.deleted(ctx, routes)
	return f, nil
}

// reserved is a setting of brokers: they delete files of that age, in hours.
const reserved = "fileReservedTime"

// usualReserve is the vendor's default: longer than almost any run.
const usualReserve = 72

// deleteLimit limits how long questions about deleted messages may take.
const deleteLimit = time.Second

// deleted returns how many messages of topics the brokers have deleted with their files; nil: not
// known.
func (c *conn) deleted(ctx context.Context, topics map[string]route) []driver.Discarded {
	ctx, cancel := context.WithTimeout(ctx, deleteLimit)
	defer cancel()
	d := driver.Discarded{Counter: "minOffset of the queues, read or not"}
	for topic, r := range topics {
		for name, b := range r.brokers {
			if err := c.cfg.on(ctx, b.master(), func(ctx context.Context, l *line) error {
				for _, q := range r.queues {
					if q.broker != name {
						continue
					}
					n, err := l.bound(ctx, minOffset, place{topic, q}, time.Time{})
					if err != nil {
						return err
					}
					d.Messages += uint64(max(0, n))
				}
				return nil
			}); err != nil {
				return nil
			}
		}
	}
	return []driver.Discarded{d}
}

// settings asks a master for its configuration and version.
func (c *conn) settings(ctx context.Context, b broker) (s map[string]string, version string, err error) {
	if b.master() == "" {
		return nil, "", fmt.Errorf("its master is away: %w", driver.ErrUnreachable)
	}
	err = c.cfg.on(ctx, b.master(), func(ctx context.Context, l *line) (err error) {
		if s, err = l.settings(ctx); err != nil {
			return err
		}
		version, err = l.version(ctx)
		return err
	})
	// "V5_5_0"
	return s, strings.ReplaceAll(strings.TrimPrefix(version, "V"), "_", "."), err
}

// decide returns the settings in the page's table, for a master in a group of that many servers. A
// slave acknowledges a message before it syncs it. With a transient store pool, a message is first
// in a process buffer and reaches the files later.
func decide(s map[string]string, servers int) driver.Known {
	k := driver.Known{"server.flush": async, "server.replication": async, "nodes": strconv.Itoa(servers)}
	switch {
	case s["flushDiskType"] == "SYNC_FLUSH":
		k["server.flush"] = synch
	case s["transientStorePoolEnable"] == "true":
		k["server.flush"] = "later"
	}
	switch have := inSync(s); {
	case servers == 1:
	case have >= servers:
		k["server.replication"] = synch
	case have*2 > servers:
		k["server.replication"] = "sync to a majority"
	}
	return k
}

// inSync returns the minimum number of servers with a message when it is confirmed.
func inSync(s map[string]string) int {
	if s["brokerRole"] != "SYNC_MASTER" || s["duplicationEnable"] == "true" {
		return 1
	}
	name := "inSyncReplicas"
	if s["enableAutoInSyncReplicas"] == "true" || s["enableControllerMode"] == "true" && s["allAckInSyncStateSet"] == "true" {
		name = "minInSyncReplicas" // it requests all available servers, down to this many
	}
	n, _ := strconv.Atoi(s[name]) // if it is not a number, nothing is guaranteed
	return max(1, n)
}

// Known implements driver.GuaranteePredictor: the servers are a master, or a master and a slave.
func (c *Config) Known(s driver.Servers) driver.Known {
	if s.Nodes == 0 {
		return nil
	}
	k := driver.KnownOf(c, "server.flush", "server.replication")
	k["nodes"] = strconv.Itoa(s.Nodes)
	if s.Nodes == 1 {
		k["server.replication"] = async
	}
	return k
}

// largest returns the brokers' maximum message size in bytes, and the setting behind it.
func (c *conn) largest(ctx context.Context) (int64, string, error) {
	f, err := c.Facts(ctx)
	if err != nil {
		return 0, "", err
	}
	most := int64(-1)
	for _, v := range strings.Split(f.Settings["maxMessageSize"], ", ") {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0, "", fmt.Errorf("maxMessageSize %q: %w", v, driver.ErrUnsupported)
		}
		if most < 0 || n < most {
			most = n
		}
	}
	return most, "the brokers' maxMessageSize", nil
}
