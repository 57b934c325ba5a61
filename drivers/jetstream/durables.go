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

// abandoned is how long a durable on an existing stream may be without a pull request before the
// server removes it, in case weir could not.
const abandoned = time.Hour

// removeLimit limits how long removing all durables may take.
const removeLimit = 5 * time.Second

// A durable is a durable consumer of a stream.
type durable struct{ stream, name string }

// A wanted is a durable that a subscription needs.
type wanted struct {
	durable
	filters  []string // subjects it takes from the stream; none: all
	subjects []string // all subjects of the stream
	sources  []int32  // index of the destination for each filter; one index for a whole stream
}

// takes returns the subjects that a durable with these filters receives, in order.
func (w wanted) takes(filters []string) []string {
	if len(filters) == 0 {
		filters = w.subjects
	}
	return slices.Sorted(slices.Values(filters))
}

// plan returns the durables of a subscription over destinations. On an existing stream, a durable's
// name identifies it as weir's and contains the subject, because several destinations may share the
// stream. A user-given name is used unchanged, so each stream has one durable, which takes all of
// its destinations.
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

// source returns the index of a message's destination, based on its subject if there are several;
// -1: none.
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

// A held is a durable in use by a consumer.
type held struct {
	jetstream.Consumer
	wanted
	again chan<- struct{} // makes the client restart; nil: it restarts by itself (fetch)
}

// pullAgain makes the client send a new pull request.
func (d *held) pullAgain() {
	select {
	case d.again <- struct{}{}:
	default:
	}
}

// begin sets a durable's start position.
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

// durable finds or creates a subscription's durable. An existing one is left unchanged, and
// rejected if it differs from what is needed.
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
			c.durables.Store(w.durable, true) // before creating it: the answer may be lost
		}
		found, err = ask(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return js.CreateConsumer(ctx, w.stream, cfg) })
		if errors.Is(err, jetstream.ErrConsumerExists) { // another process was faster
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

// check returns an error if a durable does not match what is needed.
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
	case is.MaxRequestExpires > 0 && is.MaxRequestExpires < time.Second: // the minimum that the client requests
		return w.taken("takes no pull request of a second")
	case info.Paused:
		return w.taken("is paused for " + info.PauseRemaining.Round(time.Second).String())
	}
	return nil
}

// word returns the server's name for an ack policy.
func word(p jetstream.AckPolicy) string {
	return strings.ToLower(strings.TrimPrefix(p.String(), "Ack"))
}

// taken returns the error for an existing durable that cannot be used.
func (w wanted) taken(why string) error {
	return fmt.Errorf("name taken: durable %s of stream %s %s: %w", w.name, w.stream, why, driver.ErrUnsupported)
}

// request returns the parameters of a pull request to a durable: a user's durable may have limits.
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

// removeDurables removes the recorded durables, within removeLimit.
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

// Backlog implements driver.Backlogger: messages that the durables have not sent, plus those sent
// and not acknowledged. With ack policy none (settle auto and none), the server knows only the
// former.
//
// The unsent count is the larger of two numbers, the durable's and the stream's. A missing stream
// holds nothing.
func (c *conn) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	ws, err := c.plan(ctx, subscription, destinations)
	if err != nil {
		return 0, unanswered(err)
	}
	var n uint64
	for _, w := range ws {
		d, err := ask(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return c.js.Consumer(ctx, w.stream, w.name) })
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // a memory stream is gone with its server and all its messages
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

// behind returns how many of its stream's messages an unfiltered durable has not sent, according to
// the stream's leader. In a cluster, a durable's new leader may report 0 for a stream that has
// more, because it counts in a replica that lags behind.
func behind(d *jetstream.ConsumerInfo, s *jetstream.StreamState) uint64 {
	from := max(d.Delivered.Stream, s.FirstSeq-min(s.FirstSeq, 1)) // removed messages are not sent
	gone := uint64(max(s.NumDeleted, 0))                           // deleted between the others, possibly before
	return s.LastSeq - min(s.LastSeq, from+gone)
}

// unanswered returns err as ErrUnreachable if it is not an answer from the server.
func unanswered(err error) error {
	var api jetstream.JetStreamError
	if errors.As(err, &api) && api.APIError() != nil {
		return words.Cause(err)
	}
	return words.Unreachable(err)
}
