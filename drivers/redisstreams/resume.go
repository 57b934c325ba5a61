package redisstreams

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisconn"
)

// lookAgain is when a consumer checks a second time for entries left by others: a server may take a
// moment to notice closed connections.
const lookAgain = 100 * time.Millisecond

// memberPrefix begins the names of weir's consumers in their groups. They end in the consumer's
// index, which is the same in each run, so that a durable group does not accumulate names.
const memberPrefix = "weir-"

// connectionName returns the link name of consumer number index, by which other consumers see that
// it is connected.
func connectionName(subscription, index string) string {
	return "consumer " + subscription + " " + index
}

// takeOver delivers entries left unacknowledged by departed consumers, and by an earlier consumer
// of this one's name: oldest first, without waiting for claim-after. If the server does not list
// connections, only entries of this name are taken over; if this user may not claim, none are.
func (x *reader) takeOver(ctx context.Context) error {
	err := x.takeOverAll(ctx)
	if errors.Is(redisconn.Cause(err), driver.ErrAuth) {
		return nil
	}
	return err
}

func (x *reader) takeOverAll(ctx context.Context) error {
	// Not entries that this consumer has just acknowledged.
	if err := x.acks.Wait(ctx); err != nil {
		return nil // ctx has ended
	}
	for _, key := range x.keys {
		for begin := "-"; ; {
			room, err := x.room(ctx)
			if err != nil {
				return nil // ctx has ended
			}
			pending, err := x.link.XPendingExt(ctx, &redis.XPendingExtArgs{
				Stream: key, Group: x.group, Start: begin, End: "+", Count: int64(room),
			}).Result()
			if err != nil {
				return err
			}
			if len(pending) == 0 {
				break
			}
			begin = "(" + pending[len(pending)-1].ID
			if err := x.inherit(ctx, key, pending); err != nil {
				return err
			}
		}
	}
	return nil
}

// inherit claims and delivers those of some pending entries that departed consumers left.
func (x *reader) inherit(ctx context.Context, key string, pending []redis.XPendingExt) error {
	gone, err := x.absent(ctx) // after reading pending: later consumers have their own entries
	if err != nil {
		return err
	}
	args := redis.XClaimArgs{Stream: key, Group: x.group, Consumer: x.name}
	for _, p := range pending {
		if !gone(p.Consumer) {
			continue
		}
		if len(args.Messages) == 0 || p.Idle < args.MinIdle {
			args.MinIdle = p.Idle // not those claimed by others since
		}
		args.Messages = append(args.Messages, p.ID)
	}
	if len(args.Messages) == 0 {
		return nil
	}
	messages, err := x.link.XClaim(context.WithoutCancel(ctx), &args).Result()
	if err != nil || ctx.Err() != nil || len(messages) == 0 {
		return err
	}
	if x.spec.Settle == driver.SettleAuto { // handed out means acknowledged
		ids := make([]string, len(messages))
		for i, m := range messages {
			ids[i] = m.ID
		}
		if err := x.link.XAck(context.WithoutCancel(ctx), key, x.group, ids...).Err(); err != nil {
			return err
		}
	}
	x.deliver(ctx, []redis.XStream{{Stream: key, Messages: messages}}, true)
	return nil
}

// absent asks the server for its connections, and returns a function that reports whether a group
// member is a consumer of weir's that is not connected. This consumer counts as absent, unless
// another process has a consumer of its name.
func (x *reader) absent(ctx context.Context) (func(member string) bool, error) {
	names, err := x.link.Connected(ctx)
	if errors.Is(err, driver.ErrAuth) || errors.Is(err, driver.ErrUnsupported) {
		return func(member string) bool { return member == x.name }, nil
	}
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	return func(member string) bool {
		index, ours := strings.CutPrefix(member, memberPrefix)
		if !ours {
			return false
		}
		is, ok := known[member]
		if !ok {
			is = !redisconn.AnyNamed(names, connectionName(x.spec.Subscription, index), x.link.ConnectionName())
			known[member] = is
		}
		return is
	}, nil
}
