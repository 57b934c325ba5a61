package jetstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// abandoned is after how long without a pull request the server itself removes a
// durable that weir made on a stream that is not its own, and could not remove.
const abandoned = time.Hour

// removeLimit bounds the removing of all durables.
const removeLimit = 5 * time.Second

// A durable is one on a stream.
type durable struct{ stream, name string }

// A wanted is a durable that a subscription needs.
type wanted struct {
	durable
	filters  []string // what of the stream it takes; none: all
	subjects []string // of the stream
	sources  []int32  // which of the destinations it takes, one for each filter; of a whole stream one
}

// takes returns the subjects that a durable with these filters takes, in order.
func (w wanted) takes(filters []string) []string {
	if len(filters) == 0 {
		filters = w.subjects
	}
	return slices.Sorted(slices.Values(filters))
}

// plan returns the durables of a subscription over destinations. On a stream that
// is not weir's a durable's name says that it is weir's, and names the subject: several
// destinations may be on one stream. A name of the user's own stands as it is, so
// that there is one durable on each stream, which takes all of its destinations.
func (c *conn) plan(ctx context.Context, subscription string, destinations []string) ([]wanted, error) {
	_, verbatim := c.verbatim.Load(subscription)
	var ws []wanted
	for n, d := range destinations {
		t, err := c.target(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", d, err)
		}
		w := wanted{durable: durable{t.stream, natsconn.Subscription(c.run, subscription)}, subjects: t.subjects, sources: []int32{int32(n)}}
		if t.filter != "" {
			w.name += "-" + natsconn.Token(t.filter)
			w.filters = []string{t.filter}
		}
		if verbatim {
			w.name = subscription
		}
		i := slices.IndexFunc(ws, func(o wanted) bool { return o.durable == w.durable })
		switch {
		case i < 0:
			ws = append(ws, w)
		case len(w.filters) == 0 || len(ws[i].filters) == 0:
			return nil, fmt.Errorf("destination %s: a durable takes all of stream %s, or some subjects of it, not both: %w", d, t.stream, driver.ErrUnsupported)
		default:
			ws[i].filters, ws[i].sources = append(ws[i].filters, w.filters...), append(ws[i].sources, w.sources...)
		}
	}
	return ws, nil
}

// source returns which of the destinations a message of the durable is of, by its
// subject where there are several; -1: of none.
func (w *wanted) source(subject string) int32 {
	if len(w.sources) == 1 {
		return w.sources[0]
	}
	for i, f := range w.filters {
		if natsconn.Matches(f, subject) {
			return w.sources[i]
		}
	}
	return -1
}

// A held is a durable of a consumer's.
type held struct {
	jetstream.Consumer
	wanted
	again chan<- struct{} // has the client begin anew; nil: it does so by itself (fetch)
}

// pullAgain has the client send a new pull request.
func (d *held) pullAgain() {
	select {
	case d.again <- struct{}{}:
	default:
	}
}

// begin sets where a durable begins.
func begin(cfg *jetstream.ConsumerConfig, from driver.Position) (err error) {
	switch from.At {
	case driver.AtDefault, driver.AtEarliest:
		cfg.DeliverPolicy = jetstream.DeliverAllPolicy
	case driver.AtLatest:
		cfg.DeliverPolicy = jetstream.DeliverNewPolicy
	case driver.AtOffset:
		cfg.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
		cfg.OptStartSeq, err = natsconn.Sequence(from)
	case driver.AtTime:
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &from.Time
	default:
		err = fmt.Errorf("position %v: %w", from.At, driver.ErrUnsupported)
	}
	return err
}

// durable finds a subscription's durable, or makes it where there is none. What
// exists is left as it is, and refused where it is something else.
func (c *conn) durable(ctx context.Context, js jetstream.JetStream, w wanted, cfg jetstream.ConsumerConfig, keep bool) (jetstream.Consumer, error) {
	look := func(ctx context.Context) (jetstream.Consumer, error) { return js.Consumer(ctx, w.stream, w.name) }
	found, err := ask(ctx, look)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		cfg.Durable = w.name
		switch len(w.filters) {
		case 0:
		case 1:
			cfg.FilterSubject = w.filters[0]
		default:
			cfg.FilterSubjects = w.filters
		}
		if c.run.Existing && !keep {
			cfg.InactiveThreshold = abandoned
			c.durables.Store(w.durable, true) // before: an answer may be lost
		}
		found, err = ask(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return js.CreateConsumer(ctx, w.stream, cfg) })
		if errors.Is(err, jetstream.ErrConsumerExists) { // another was quicker
			found, err = ask(ctx, look)
		}
	}
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrNotPullConsumer):
		return nil, w.taken("is a push consumer")
	case errors.Is(err, jetstream.ErrInvalidConsumerName), errors.As(err, &api) && api.Code == http.StatusBadRequest:
		return nil, fmt.Errorf("durable %s on stream %s: %w: %w", w.name, w.stream, driver.ErrUnsupported, err)
	case err != nil:
		return nil, words.Cause(err)
	}
	info := found.CachedInfo()
	c.mu.Lock()
	defer c.mu.Unlock()
	if info.Config.AckPolicy == jetstream.AckExplicitPolicy {
		c.inForce.Add("ack_wait", info.Config.AckWait.String())
		c.inForce.Add("max_ack_pending", strconv.Itoa(info.Config.MaxAckPending))
	}
	return found, w.check(info, cfg.AckPolicy)
}

// check refuses a durable that is not what is wanted.
func (w wanted) check(info *jetstream.ConsumerInfo, ack jetstream.AckPolicy) error {
	is := info.Config
	filters := is.FilterSubjects
	if is.FilterSubject != "" {
		filters = []string{is.FilterSubject}
	}
	has, wants := w.takes(filters), w.takes(w.filters)
	switch {
	case is.Durable == "":
		return w.taken("is not durable")
	case is.AckPolicy != ack:
		return w.taken(fmt.Sprintf("has ack policy %s, and the way of settling needs %s", word(is.AckPolicy), word(ack)))
	case !slices.Equal(has, wants):
		return w.taken(fmt.Sprintf("takes %s of the stream, not %s (each consumer of a subscription must take all of its destinations on one stream)",
			strings.Join(has, ", "), strings.Join(wants, ", ")))
	case is.HeadersOnly:
		return w.taken("delivers headers only")
	case is.ReplayPolicy == jetstream.ReplayOriginalPolicy:
		return w.taken("delivers at the pace at which messages came (replay policy original)")
	case len(is.PriorityGroups) > 0:
		return w.taken("has priority groups")
	case is.MaxRequestExpires > 0 && is.MaxRequestExpires < time.Second: // the least that the client asks for
		return w.taken("takes no pull request of a second")
	case info.Paused:
		return w.taken("is paused for " + info.PauseRemaining.Round(time.Second).String())
	}
	return nil
}

// word returns the server's own word for an ack policy.
func word(p jetstream.AckPolicy) string {
	return strings.ToLower(strings.TrimPrefix(p.String(), "Ack"))
}

// taken says why a durable that exists cannot be used.
func (w wanted) taken(why string) error {
	return fmt.Errorf("name taken: durable %s of stream %s %s: %w", w.name, w.stream, why, driver.ErrUnsupported)
}

// request returns what a pull request asks of a durable, for how long: one of the user's
// own may have limits.
func (x *consumer) request(d jetstream.Consumer) (messages, bytes int, wait time.Duration) {
	is := d.CachedInfo().Config
	return atMost(x.prefetch, is.MaxRequestBatch), atMost(pullBytes, is.MaxRequestMaxBytes), atMost(pullWait, is.MaxRequestExpires)
}

func atMost[T int | time.Duration](n, limit T) T {
	if limit > 0 {
		return min(n, limit)
	}
	return n
}

// removeDurables removes what was remembered, within removeLimit.
func (c *conn) removeDurables(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	var errs []error
	for k := range c.durables.Range {
		c.durables.Delete(k)
		d := k.(durable)
		_, err := ask(ctx, func(ctx context.Context) (none any, err error) {
			return none, c.js.DeleteConsumer(ctx, d.stream, d.name)
		})
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) && !errors.Is(err, jetstream.ErrStreamNotFound) {
			errs = append(errs, fmt.Errorf("consumer %s stays on stream %s: %w", d.name, d.stream, words.Cause(err)))
		}
	}
	return errors.Join(errs...)
}

// Backlog implements driver.Backlogger: what the durables have not sent, and what
// they have sent and wait to see acknowledged. Under ack policy none (settle auto
// and none) the server knows the former only.
//
// What is not sent is the larger of two numbers, of the durable and of its stream. A stream
// that is not there holds nothing.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	ws, err := c.plan(ctx, subscription, destinations)
	if err != nil {
		return 0, unanswered(err)
	}
	var n uint64
	for _, w := range ws {
		d, err := ask(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return c.js.Consumer(ctx, w.stream, w.name) })
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // one in memory is gone with its server, and all that was in it
		}
		if err != nil {
			return 0, fmt.Errorf("stream %s: %w", w.stream, unanswered(err))
		}
		info := d.CachedInfo()
		unsent := info.NumPending
		if len(w.filters) == 0 {
			stream, err := ask(ctx, func(ctx context.Context) (jetstream.Stream, error) { return c.js.Stream(ctx, w.stream) })
			if err != nil {
				return 0, fmt.Errorf("stream %s: %w", w.stream, unanswered(err))
			}
			unsent = max(unsent, behind(info, &stream.CachedInfo().State))
		}
		n += unsent + uint64(max(info.NumAckPending, 0))
	}
	return n, nil
}

// behind is how many messages of its stream a durable without a filter has not sent, by
// what the stream's leader says. In a cluster a durable's new leader may say 0 of a stream
// that has more: it counts in a replica that is behind.
func behind(d *jetstream.ConsumerInfo, s *jetstream.StreamState) uint64 {
	from := max(d.Delivered.Stream, s.FirstSeq-min(s.FirstSeq, 1)) // what is gone is not sent
	gone := uint64(max(s.NumDeleted, 0))                           // from between the others, maybe before
	return s.LastSeq - min(s.LastSeq, from+gone)
}

// unanswered returns err as ErrUnreachable where it is not an answer of the server.
func unanswered(err error) error {
	var api jetstream.JetStreamError
	if errors.As(err, &api) && api.APIError() != nil {
		return words.Cause(err)
	}
	return words.Unreachable(err)
}
