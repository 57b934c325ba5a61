package nsq

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/settings"
)

// asked lists the nsqd settings that decide durability and delivery, as reported by GET
// /config/<name>. It also reports the data path, but cannot know the kind of disk.
var asked = []struct {
	name     string
	duration bool
}{
	{"mem_queue_size", false},
	{"sync_every", false},
	{"sync_timeout", true},
	{"max_msg_size", false},
	{"max_rdy_count", false},
	{"msg_timeout", true},
}

// Facts asks every server.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f := driver.Facts{
		Name: "nsqd", Nodes: len(c.nodes),
		Confirms: page.Confirmations.Of(nil),
		Settings: map[string]string{"topics": c.cfg.Topics, "channels": c.cfg.Channels},
	}
	if c.run.Existing {
		f.Settings["topics"] = "existing"
	}
	set := settings.Values{}
	for _, n := range c.nodes {
		var info struct{ Version string }
		if err := c.api.Get(ctx, n.api, "/info", nil, &info); err != nil {
			return f, err
		}
		set.Add("version", info.Version)
		for _, t := range asked {
			var v json.Number
			if err := c.option(ctx, n, t.name, &v); err != nil {
				return f, err
			}
			text := v.String()
			if d, err := v.Int64(); err == nil && t.duration {
				text = time.Duration(d).String()
			}
			set.Add(t.name, text)
		}
	}
	f.Version = set.Of("version")
	delete(set, "version")
	set.Into(f.Settings)
	if c.cfg.MsgTimeout > 0 {
		f.Settings["msg_timeout"] = c.cfg.MsgTimeout.String()
	}
	return f, nil
}

// counts are nsqd's statistics for a topic and its channels.
type counts struct {
	Topics []struct {
		Depth    uint64
		Channels []struct {
			Depth    uint64
			InFlight uint64 `json:"in_flight_count"`
			Deferred uint64 `json:"deferred_count"`
		}
	}
}

// stats asks a server for the counts of one topic, optionally of only one channel.
func (c *conn) stats(ctx context.Context, n *node, topic, channel string) (counts, error) {
	query := url.Values{"format": {"json"}, "topic": {topic}, "include_clients": {"false"}, "include_mem": {"false"}}
	if channel != "" {
		query.Set("channel", channel)
	}
	var s counts
	err := c.api.Get(ctx, n.api, "/stats", query, &s)
	return s, err
}

// Backlog implements driver.Backlogger: messages that the topics have not passed to their channels,
// messages queued or deferred in the channel, and messages sent and not settled.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	return each.Sum(destinations, func(d string) (sum uint64, err error) {
		topic, err := c.topic(d)
		if err != nil {
			return 0, err
		}
		for _, n := range c.everywhere() {
			s, err := c.stats(ctx, n, topic, c.channel(subscription))
			if err != nil {
				return 0, err
			}
			for _, t := range s.Topics {
				sum += t.Depth
				for _, ch := range t.Channels {
					sum += ch.Depth + ch.InFlight + ch.Deferred
				}
			}
		}
		return sum, nil
	})
}
