package jetstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// Asking a cluster that is electing: short questions, asked again. Where votes are
// split the next election comes after 4 to 9 s (server/raft.go).
const (
	askLimit   = 2 * time.Second  // of one question
	askSilence = 30 * time.Second // until nobody will answer
	askElects  = 15 * time.Second // until who answers that there is no leader will have none
	askNobody  = time.Second      // until nobody there is taken for no JetStream
	askPause   = 100 * time.Millisecond
)

// Error codes of the server (server/errors.json) that nats.go has no names for.
const (
	codeNoPeers         jetstream.ErrorCode = 10005 // no suitable peers for placement
	codeClusterNotAvail jetstream.ErrorCode = 10008 // temporarily unavailable
	codeNoResources     jetstream.ErrorCode = 10023
	codeMemoryExceeded  jetstream.ErrorCode = 10028
	codeStorageExceeded jetstream.ErrorCode = 10047
	codeReplicas        jetstream.ErrorCode = 10074 // replicas > 1 not supported in non-clustered mode
	codeStoreFailed     jetstream.ErrorCode = 10077 // such as "maximum bytes exceeded"
	codeTooManyReplicas jetstream.ErrorCode = 10110 // maximum replicas is 5
	codeTooManyRequests jetstream.ErrorCode = 10167
)

// stream returns the name of a destination's stream.
func (c *conn) stream(destination string) string {
	return "weir_" + natsconn.Token(c.run.ID) + "_" + natsconn.Token(destination)
}

// Declare makes a stream for each destination.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	for _, d := range ds {
		if err := natsconn.CheckDestination(d); err != nil {
			return fmt.Errorf("jetstream: %w", err)
		}
		storage := jetstream.FileStorage
		if c.cfg.Storage == "memory" {
			storage = jetstream.MemoryStorage
		}
		cfg := jetstream.StreamConfig{
			Name: c.stream(d.Name), Subjects: []string{natsconn.Subject(c.run, d.Name)},
			Storage: storage, Replicas: max(d.Replicas, 1),
			Retention: jetstream.LimitsPolicy, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxConsumers: -1,
		}
		err := ask(ctx, func(ctx context.Context) error {
			_, err := c.js.CreateOrUpdateStream(ctx, cfg)
			return err
		})
		if err != nil {
			return fmt.Errorf("jetstream: destination %s: %w", d.Name, cause(err))
		}
		c.mu.Lock()
		c.declared[cfg.Name] = true
		c.mu.Unlock()
	}
	return nil
}

// Delete removes the streams, and with each its consumers.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	var errs []error
	for _, d := range ds {
		name := c.stream(d.Name)
		err := ask(ctx, func(ctx context.Context) error { return c.js.DeleteStream(ctx, name) })
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			errs = append(errs, fmt.Errorf("jetstream: destination %s: %w", d.Name, cause(err)))
			continue
		}
		c.mu.Lock()
		delete(c.declared, name)
		c.mu.Unlock()
	}
	return errors.Join(errs...)
}

// ask asks until it is answered: a cluster without a leader is silent, or says so,
// and a question on its way while routes are made is lost.
func ask(ctx context.Context, question func(context.Context) error) error {
	silence, cancel := context.WithTimeout(ctx, askSilence)
	defer cancel()
	elects, cancel := context.WithTimeout(ctx, askElects)
	defer cancel()
	nobody, cancel := context.WithTimeout(ctx, askNobody)
	defer cancel()
	for {
		short, cancel := context.WithTimeout(silence, askLimit)
		err := question(short)
		cancel()
		limit := silence
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			err = fmt.Errorf("the server has no JetStream: %w: %w", driver.ErrUnsupported, err)
			limit = nobody
		case electing(err):
			limit = elects
		case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout):
			return err
		}
		if limit.Err() != nil || !pause(limit, askPause) {
			return err
		}
	}
}

// electing reports whether a cluster has answered that it has no leader yet, or
// one that was just elected and takes its peers for offline until they speak.
func electing(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == codeClusterNotAvail || api.ErrorCode == codeNoPeers && strings.Contains(api.Description, "offline"))
}

// reachable returns when the server at hand knows where to send messages of the
// subject to: in a cluster it learns that a little after the stream was made. It
// asks with a message that the stream must refuse, as being meant for another.
func reachable(ctx context.Context, link *natsconn.Link, subject string) error {
	if link.ConnectedClusterName() == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		m := nats.NewMsg(subject)
		m.Header.Set(jetstream.ExpectedStreamHeader, "weir-asks-who-is-there")
		_, err := link.RequestMsgWithContext(ctx, m)
		if !errors.Is(err, nats.ErrNoResponders) {
			return cause(err)
		}
		if !pause(ctx, pullPause) {
			return fmt.Errorf("no stream at %s: %w: %w", subject, driver.ErrTimeout, err)
		}
	}
}

// cause is natsconn.Cause with JetStream's own errors.
func cause(err error) error {
	var is error
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api):
		switch api.ErrorCode {
		case codeNoPeers, codeReplicas, codeTooManyReplicas,
			jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
			is = driver.ErrUnsupported
		case jetstream.JSErrCodeStreamMessageExceedsMaximum:
			is = driver.ErrTooLarge
		case codeNoResources, codeMemoryExceeded, codeStorageExceeded, codeStoreFailed, codeTooManyRequests, codeClusterNotAvail:
			is = driver.ErrOverloaded
		default:
			return err
		}
	case errors.Is(err, jetstream.ErrConnectionClosed), errors.Is(err, jetstream.ErrServerShutdown):
		is = driver.ErrDisconnected
	default:
		return natsconn.Cause(err)
	}
	return fmt.Errorf("%w: %w", is, err)
}

// Facts reads the settings of the streams and of the servers that hold them.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f, err := c.link.Base(ctx)
	if err != nil {
		return f, fmt.Errorf("jetstream: %w", err)
	}
	c.mu.Lock()
	names := slices.Sorted(maps.Keys(c.declared))
	c.mu.Unlock()

	var infos []*jetstream.StreamInfo
	holders := map[string]bool{}
	for _, name := range names {
		var info *jetstream.StreamInfo
		err := ask(ctx, func(ctx context.Context) error {
			s, err := c.js.Stream(ctx, name)
			if err == nil {
				info = s.CachedInfo()
			}
			return err
		})
		if err != nil {
			return f, fmt.Errorf("jetstream: stream %s: %w", name, cause(err))
		}
		infos = append(infos, info)
		for _, h := range c.holders(info) {
			holders[h] = true
		}
	}
	if len(infos) == 0 { // nothing declared: what a stream of one replica would have
		holders[c.link.ConnectedServerName()] = true
	}
	want := slices.Sorted(maps.Keys(holders))
	servers := c.link.AskServers(ctx, c.cfg.Monitor, want)
	f.Nodes = max(f.Nodes, len(servers))

	set := settings{}
	for _, h := range want {
		s, known := servers[h]
		switch {
		case !known:
			set.add("sync_interval", "unknown (assumed not synced)")
		case s.SyncAlways:
			set.add("sync_interval", "always")
		default:
			set.add("sync_interval", s.SyncInterval.String())
		}
	}
	weakest := driver.Confirms{}
	for i, info := range infos {
		synced := true
		for _, h := range c.holders(info) {
			synced = synced && servers[h].SyncAlways
		}
		async := info.Config.PersistMode == jetstream.AsyncPersistMode
		this := confirms(info.Config.Storage, info.Config.Replicas, synced, async)
		if i == 0 {
			weakest = this
		}
		weakest = driver.Confirms{
			Guarantee: min(weakest.Guarantee, this.Guarantee), Copies: min(weakest.Copies, this.Copies), Stable: min(weakest.Stable, this.Stable),
		}
		set.add("storage", strings.ToLower(info.Config.Storage.String()))
		set.add("num_replicas", strconv.Itoa(info.Config.Replicas))
		set.add("retention", strings.ToLower(info.Config.Retention.String()))
		set.add("discard", strings.ToLower(info.Config.Discard.String()))
		if async {
			set.add("persist_mode", "async")
		}
	}
	if len(infos) == 0 {
		storage := jetstream.FileStorage
		if c.cfg.Storage == "memory" {
			storage = jetstream.MemoryStorage
		}
		weakest = confirms(storage, 1, servers[c.link.ConnectedServerName()].SyncAlways, false)
	}
	f.Confirms = weakest
	for k, v := range set {
		f.Settings[k] = strings.Join(v, ", ")
	}
	f.Settings["ack_wait"] = c.cfg.AckWait.String()
	f.Settings["max_ack_pending"] = strconv.Itoa(c.cfg.MaxAckPending)
	c.mu.Lock()
	for k, v := range c.inForce { // a durable that was there has its own
		f.Settings[k] = strings.Join(v, ", ")
	}
	c.mu.Unlock()
	f.Settings["ack_confirm"] = strconv.FormatBool(c.cfg.AckConfirm)
	return f, nil
}

// holders returns the names of the servers that hold a stream.
func (c *conn) holders(info *jetstream.StreamInfo) []string {
	if info.Cluster == nil || info.Cluster.Leader == "" {
		return []string{c.link.ConnectedServerName()}
	}
	names := []string{info.Cluster.Leader}
	for _, r := range info.Cluster.Replicas {
		names = append(names, r.Name)
	}
	return names
}

// confirms returns what the package comment's table says.
func confirms(storage jetstream.StorageType, replicas int, synced, async bool) driver.Confirms {
	c := driver.Confirms{Guarantee: driver.Received, Copies: driver.CopiesOne, Stable: driver.StableNone}
	if replicas > 1 {
		c.Guarantee, c.Copies = driver.Replicated, driver.CopiesQuorum
	}
	if storage == jetstream.FileStorage && !async {
		c.Stable = driver.StableOS
		if synced {
			c.Guarantee, c.Stable = driver.Persisted, driver.StableFsync
		}
	}
	return c
}

// settings gathers the different values of settings that several things have.
type settings map[string][]string

func (s settings) add(name, value string) {
	if !slices.Contains(s[name], value) {
		s[name] = append(s[name], value)
	}
}
