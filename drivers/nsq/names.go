package nsq

import (
	"fmt"
	"strings"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/names"
)

// ephemeralSuffix marks a topic or a channel that exists in memory only.
const ephemeralSuffix = "#ephemeral"

// mostName is the maximum length of a name before the suffix: 64 in total.
const mostName = 64 - len(ephemeralSuffix)

// name joins parts to a valid NSQ name; see names.Join.
func name(kind string, parts ...string) string {
	n := names.Join(mostName, parts...)
	if kind == ephemeral {
		n += ephemeralSuffix
	}
	return n
}

// topic returns a destination's topic: a name of weir's own or, with existing destinations, the
// destination itself.
func (c *conn) topic(destination string) (string, error) {
	if !c.run.Existing {
		return name(c.cfg.Topics, "weir", c.run.ID, destination), nil
	}
	if !client.IsValidTopicName(destination) {
		return "", fmt.Errorf("%q is not a topic (up to 64 letters, digits, dots, hyphens and underscores, then #ephemeral or not): %w", destination, driver.ErrUnsupported)
	}
	return destination, nil
}

// channel returns a subscription's channel, whose name contains the run on existing topics.
func (c *conn) channel(subscription string) string {
	s := strings.TrimPrefix(subscription, c.run.ID+"-")
	if c.run.Existing {
		return name(c.cfg.Channels, "weir", c.run.ID, s)
	}
	return name(c.cfg.Channels, s)
}
