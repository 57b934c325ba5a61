package nsq

import (
	"fmt"
	"strings"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/names"
)

// ephemeralSuffix marks a topic or a channel that lives in memory only.
const ephemeralSuffix = "#ephemeral"

// mostName is how long a name may be that the suffix may follow: 64 in all.
const mostName = 64 - len(ephemeralSuffix)

// name joins parts to a name that NSQ takes; see names.Join.
func name(kind string, parts ...string) string {
	n := names.Join(mostName, parts...)
	if kind == ephemeral {
		n += ephemeralSuffix
	}
	return n
}

// topic returns the name of a destination's topic: weir's own, or where the run's
// destinations exist already the name itself.
func (c *conn) topic(destination string) (string, error) {
	if !c.run.Existing {
		return name(c.cfg.Topics, "weir", c.run.ID, destination), nil
	}
	if !client.IsValidTopicName(destination) {
		return "", fmt.Errorf("%q is not a topic (up to 64 letters, digits, dots, hyphens and underscores, then #ephemeral or not): %w", destination, driver.ErrUnsupported)
	}
	return destination, nil
}

// channel returns the name of a subscription's channel, which on a topic that is not
// weir's names the run.
func (c *conn) channel(subscription string) string {
	s := strings.TrimPrefix(subscription, c.run.ID+"-")
	if c.run.Existing {
		return name(c.cfg.Channels, "weir", c.run.ID, s)
	}
	return name(c.cfg.Channels, s)
}
