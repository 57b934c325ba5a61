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
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/retry"
	"github.com/weirmq/weir/drivers/internal/settings"
)

// Limits for requests to a cluster that is electing: short requests, repeated. After a split vote,
// the next election comes after 4 to 9 s (server/raft.go).
const (
	askLimit   = 2 * time.Second  // of one request
	askSilence = 30 * time.Second // until silence counts as the answer
	askElects  = 15 * time.Second // until a cluster that reports no leader counts as unable to elect one
	askNone    = time.Second      // until a server without the service counts as lacking JetStream
	askPause   = 100 * time.Millisecond
)

// Error codes of the server (server/errors.json) for which nats.go has no names.
const (
	codeNoPeers         jetstream.ErrorCode = 10005 // no suitable peers for placement
	codeClusterNotAvail jetstream.ErrorCode = 10008 // temporarily unavailable
	codeNoResources     jetstream.ErrorCode = 10023
	codeMemoryExceeded  jetstream.ErrorCode = 10028
	codeStorageExceeded jetstream.ErrorCode = 10047
	codeBoundRequired   jetstream.ErrorCode = 10113 // account requires a stream config to have max bytes set
	codeBoundExceeded   jetstream.ErrorCode = 10122 // stream max bytes exceeds account limit max stream bytes
	codeReplicas        jetstream.ErrorCode = 10074 // replicas > 1 not supported in non-clustered mode
	codeStoreFailed     jetstream.ErrorCode = 10077 // such as "maximum bytes exceeded"
	codeTooManyReplicas jetstream.ErrorCode = 10110 // maximum replicas is 5
	codeTooManyRequests jetstream.ErrorCode = 10167
)

func (c *conn) stream(destination string) string {
	return "weir_" + natsconn.Token(c.run.ID) + "_" + natsconn.Token(destination)
}

// storage returns the storage type of the option of that name.
func (c *Config) storage() jetstream.StorageType {
	if c.Storage == "memory" {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

// Declare creates a stream for each destination.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	return each.InTurn(ds, func(d driver.Destination) error {
		cfg := jetstream.StreamConfig{
			Name: c.stream(d.Name), Subjects: []string{natsconn.Subject(c.run, d.Name)},
			Storage: c.cfg.storage(), Replicas: max(d.Replicas, 1),
			Retention: jetstream.LimitsPolicy, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxConsumers: -1,
		}
		if c.cfg.MaxBytes > 0 {
			cfg.MaxBytes = c.cfg.MaxBytes
		}
		_, err := ask(ctx, func(ctx context.Context) (jetstream.Stream, error) { return c.js.CreateOrUpdateStream(ctx, cfg) })
		if err != nil {
			return c.cfg.refused(words.Cause(err))
		}
		c.declared.Store(cfg.Name, true)
		return nil
	})
}

// refused adds a hint about the option max-bytes to a failed stream creation.
func (c *Config) refused(err error) error {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return err
	}
	bound := driver.FormatSize(c.MaxBytes)
	switch api.ErrorCode {
	case codeBoundRequired:
		return fmt.Errorf("option max-bytes is not set, and this account demands a bound for the size of a stream: %w", err)
	case codeBoundExceeded:
		return fmt.Errorf("option max-bytes is %s, more than this account lets a stream have: %w", bound, err)
	case codeNoResources, codeMemoryExceeded, codeStorageExceeded:
		if c.MaxBytes > 0 {
			return fmt.Errorf("option max-bytes is %s for each of the streams, and the account or the server has less left: %w", bound, err)
		}
	}
	return err
}

// Delete removes the streams along with their consumers.
func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		name := c.stream(d.Name)
		_, err := ask(ctx, func(ctx context.Context) (none any, err error) { return none, c.js.DeleteStream(ctx, name) })
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return words.Cause(err)
		}
		c.declared.Delete(name)
		return nil
	})
}

// ask repeats a request until it is answered: a cluster without a leader is silent or says so, and
// a request in transit while routes are set up is lost.
func ask[T any](ctx context.Context, question func(context.Context) (T, error)) (T, error) {
	silence, cancel := context.WithTimeout(ctx, askSilence)
	defer cancel()
	elects, cancel := context.WithTimeout(ctx, askElects)
	defer cancel()
	none, cancel := context.WithTimeout(ctx, askNone)
	defer cancel()
	for {
		short, cancel := context.WithTimeout(silence, askLimit)
		answer, err := question(short)
		cancel()
		limit := silence
		switch {
		case noResponders(err):
			err = fmt.Errorf("the server has no JetStream: %w: %w", driver.ErrUnsupported, err)
			limit = none
		case electing(err):
			limit = elects
		case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout):
			return answer, err
		}
		if limit.Err() != nil || !retry.Pause(limit, askPause) {
			return answer, err
		}
	}
}

// electing reports whether a cluster answered that it has no leader yet, or a newly elected one
// that considers its peers offline until they respond.
func electing(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == codeClusterNotAvail || api.ErrorCode == codeNoPeers && strings.Contains(api.Description, "offline"))
}

// words maps the client's errors, and JetStream's own.
var words = natsconn.Words(func(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api):
		switch api.ErrorCode {
		case codeNoPeers, codeReplicas, codeTooManyReplicas, codeBoundRequired, codeBoundExceeded,
			jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
			return driver.ErrUnsupported
		case jetstream.JSErrCodeStreamMessageExceedsMaximum:
			return driver.ErrTooLarge
		case codeNoResources, codeMemoryExceeded, codeStorageExceeded, codeClusterNotAvail:
			return driver.ErrBlocked
		case codeStoreFailed:
			return driver.ErrOverloaded
		case codeTooManyRequests:
			return failure.Said(driver.ErrOverloaded, err, api.Description+": more is in flight than the stream takes in (allow less: --in-flight)")
		}
	case errors.Is(err, jetstream.ErrConnectionClosed), errors.Is(err, jetstream.ErrServerShutdown):
		return driver.ErrDisconnected
	}
	return nil
})

// Facts reads the settings of the streams and of the servers that hold them.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f, err := c.link.Base(ctx)
	if err != nil {
		return f, err
	}
	var names []string
	for name := range c.declared.Range {
		names = append(names, name.(string))
	}
	slices.Sort(names) // a stable order for the settings of several streams
	var infos []*jetstream.StreamInfo
	holders := map[string]bool{}
	for _, name := range names {
		info, err := c.streamInfo(ctx, name)
		if err != nil {
			return f, fmt.Errorf("stream %s: %w", name, words.Cause(err))
		}
		infos = append(infos, info)
		for _, h := range c.holders(info) {
			holders[h] = true
		}
	}
	here := c.link.ConnectedServerName()
	if len(infos) == 0 { // nothing declared: assume a stream with one replica
		holders[here] = true
	}
	want := slices.Sorted(maps.Keys(holders))
	servers := c.askServers(ctx, want)
	f.Nodes = max(f.Nodes, len(servers))

	set := settings.Values{}
	for _, h := range want {
		s, known := servers[h]
		switch {
		case !known:
			set.Add("sync_interval", "unknown (assumed not synced)")
		case s.SyncAlways:
			set.Add("sync_interval", "always")
		default:
			set.Add("sync_interval", s.SyncInterval.String())
		}
	}
	if len(infos) == 0 {
		f.Confirms = page.Confirmations.Of(known(c.cfg.storage(), 1, servers[here].SyncAlways, false))
	}
	for _, info := range infos {
		is := info.Config
		if info.Cluster == nil {
			f.Leaders = append(f.Leaders, c.link.ConnectedAddr())
		} else if at := servers[info.Cluster.Leader].address; at != "" {
			f.Leaders = append(f.Leaders, at)
		}
		async := is.PersistMode == jetstream.AsyncPersistMode
		unsynced := slices.ContainsFunc(c.holders(info), func(h string) bool { return !servers[h].SyncAlways })
		f.Confirms = f.Confirms.Weaker(page.Confirmations.Of(known(is.Storage, is.Replicas, !unsynced, async)))
		set.Add("storage", strings.ToLower(is.Storage.String()))
		set.Add("num_replicas", strconv.Itoa(is.Replicas))
		set.Add("retention", strings.ToLower(is.Retention.String()))
		if is.MaxBytes > 0 {
			set.Add("max_bytes", driver.FormatSize(is.MaxBytes))
		}
		set.Add("discard", strings.ToLower(strings.TrimPrefix(is.Discard.String(), "Discard")))
		if async {
			set.Add("persist_mode", "async")
		}
		f.Discards = append(f.Discards, discards(&is)...)
	}
	slices.Sort(f.Discards)
	f.Discards = slices.Compact(f.Discards)
	set.Into(f.Settings)
	f.Settings["ack_wait"] = c.cfg.AckWait.String()
	f.Settings["max_ack_pending"] = strconv.Itoa(c.cfg.MaxAckPending)
	f.Settings["ack_confirm"] = strconv.FormatBool(c.cfg.AckConfirm)
	c.mu.Lock()
	c.inForce.Into(f.Settings) // an existing durable has its own settings
	c.mu.Unlock()
	return f, nil
}

// discards returns the limits by which a stream drops messages
// (https://docs.nats.io/nats-concepts/jetstream/streams).
func discards(c *jetstream.StreamConfig) (all []string) {
	if c.MaxAge > 0 {
		all = append(all, fmt.Sprintf("messages are deleted after %v (max_age)", c.MaxAge))
	}
	if n := c.MaxMsgsPerSubject; n > 0 && !c.DiscardNewPerSubject {
		all = append(all, fmt.Sprintf("a stream drops the oldest beyond %d messages of a subject (max_msgs_per_subject)", n))
	}
	if c.Discard != jetstream.DiscardOld {
		return all
	}
	if c.MaxMsgs > 0 {
		all = append(all, fmt.Sprintf("a stream drops the oldest beyond %d messages (max_msgs)", c.MaxMsgs))
	}
	if c.MaxBytes > 0 {
		all = append(all, fmt.Sprintf("a stream drops the oldest messages beyond %s (max_bytes)", driver.FormatSize(c.MaxBytes)))
	}
	return all
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

// Known implements driver.GuaranteePredictor. An existing stream may be stored in any way.
func (c *Config) Known(s driver.Servers) driver.Known {
	if s.Nodes == 0 {
		return nil
	}
	return known(c.storage(), s.Replicas, c.Server.SyncAlways, false)
}

// known returns a stream's settings. With asynchronous persistence, a stream is written later.
func known(storage jetstream.StorageType, replicas int, synced, async bool) driver.Known {
	k := driver.Known{
		"storage": strings.ToLower(storage.String()), "replication": strconv.Itoa(replicas), "server.sync-always": strconv.FormatBool(synced),
	}
	if async {
		k["storage"] += ", later"
	}
	return k
}
