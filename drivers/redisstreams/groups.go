package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// removeLimit limits how long removing all groups may take.
const removeLimit = 5 * time.Second

// group returns a subscription's group on a stream. On an existing stream, its name contains the
// run, unless it is durable.
func (c *conn) group(stream, subscription string) group {
	g := group{stream, subscription}
	if _, durable := c.durable.Get(subscription); c.run.Existing && !durable {
		g.name = "weir-" + c.run.ID + "-" + strings.TrimPrefix(subscription, c.run.ID+"-")
	}
	return g
}

// makeGroup creates a group that begins after an ID, and its stream if missing; an existing group
// is left unchanged.
func (c *conn) makeGroup(ctx context.Context, g group, start string) error {
	link, err := c.at(ctx, g.key)
	if err != nil {
		return err
	}
	err = link.XGroupCreateMkStream(ctx, g.key, g.name, start).Err()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return err
	}
	return nil
}

// destroyGroup removes a group.
func (c *conn) destroyGroup(ctx context.Context, g group) error {
	link, err := c.at(ctx, g.key)
	if err != nil {
		return err
	}
	return link.XGroupDestroy(ctx, g.key, g.name).Err()
}

// removeGroups removes the recorded groups, within removeLimit.
func (c *conn) removeGroups(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	var errs []error
	for g := range c.groups.All() {
		err := c.destroyGroup(ctx, g)
		if err != nil && !gone(err) {
			errs = append(errs, fmt.Errorf("group %s stays on stream %s: %w", g.name, g.key, redisconn.Cause(err)))
		}
	}
	return errors.Join(errs...)
}

// gone reports whether err means that a group or its stream does not exist, or no longer. An
// append-only file or a snapshot would have kept it across a restart.
func gone(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && slices.ContainsFunc([]string{"NOGROUP", "ERR The XGROUP subcommand requires the key to exist", "ERR no such key"},
		func(text string) bool { return strings.HasPrefix(said.Error(), text) })
}

// lost returns the error of a lost subscription.
func lost(err error) error {
	return fmt.Errorf("subscription lost: the server has no such group any more: %w: %w", driver.ErrUnsupported, err)
}
