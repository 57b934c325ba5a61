package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
)

// connectLimit limits connecting. It is shorter than callers wait for an answer.
const connectLimit = 4 * time.Second

// leaveLimit limits how long leaving a group may take.
const leaveLimit = 3 * time.Second

// A Link is one client with its connections: per broker one for producing, one for fetching and one
// for everything else.
type Link struct {
	*kgo.Client
	admin *kadm.Client
	watch *watch
	once  sync.Once
}

// Connect creates a client and contacts a broker, within ctx and 4 s. name identifies the client in
// events. lost, if not nil, is called for each connection that broke while in use, or that could
// not be reopened.
func Connect(ctx context.Context, o *Options, run driver.Run, name string, lost func(error), more ...kgo.Opt) (*Link, error) {
	opts, list, err := o.client()
	if err != nil {
		return nil, err
	}
	w := &watch{name: name, run: run, lost: lost, down: map[int32]bool{}}
	client, err := kgo.NewClient(append(append(opts, kgo.ClientID("weir-"+run.ID), kgo.WithHooks(w)), more...)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
	}
	l := &Link{Client: client, admin: kadm.NewClient(client), watch: w}
	l.admin.SetTimeoutMillis(int32(adminWait.Milliseconds()))
	short, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	if err := client.Ping(short); err != nil {
		l.Kill()
		err = Cause(err)
		if errors.Is(err, driver.ErrAuth) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %s: %w", driver.ErrUnreachable, list, err)
	}
	w.made.Store(true)
	return l, nil
}

// Advertised contacts every broker at the address that it advertises. If a broker is unreachable
// there, the error is ErrUnreachable.
func (l *Link) Advertised(ctx context.Context) error {
	meta, err := l.Metadata(ctx)
	if err != nil {
		return err
	}
	if len(meta.Brokers) == 0 {
		return fmt.Errorf("%w: the cluster names no brokers", driver.ErrUnreachable)
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	versions, err := l.admin.ApiVersions(ctx)
	if err != nil {
		return Unanswered(err)
	}
	for _, b := range meta.Brokers {
		if err := versions[b.NodeID].Err; err != nil {
			at := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
			return fmt.Errorf("%w: broker %d advertises %s: %w", driver.ErrUnreachable, b.NodeID, at, Cause(err))
		}
	}
	return nil
}

// Kill closes the client at once, without leaving a group.
func (l *Link) Kill() {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	l.Close(over)
}

// Close leaves the group, within ctx and 3 s, and closes the client. Messages that are still unsent
// complete before it returns. It is idempotent.
func (l *Link) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveLimit)
	defer cancel()
	l.once.Do(func() {
		l.watch.closing.Store(true)
		l.AllowRebalance()
		_ = l.LeaveGroupContext(ctx) // brokers notice a missing member anyway
		l.Client.Close()
	})
}

// A watch receives the client's connection events.
type watch struct {
	name    string
	run     driver.Run
	lost    func(error)
	closing atomic.Bool
	made    atomic.Bool // events are ignored before the first answer

	mu   sync.Mutex
	down map[int32]bool // brokers with a broken connection
}

var (
	_ kgo.HookBrokerConnect = (*watch)(nil)
	_ kgo.HookBrokerE2E     = (*watch)(nil)
)

// OnBrokerConnect records whether a broker is back.
func (w *watch) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		w.broke(meta, err)
		return
	}
	w.mu.Lock()
	back := w.down[meta.NodeID]
	delete(w.down, meta.NodeID)
	w.mu.Unlock()
	if back {
		w.run.Tell(driver.Reconnect, w.name+", "+called(meta))
	}
}

// OnBrokerE2E records unanswered requests.
func (w *watch) OnBrokerE2E(meta kgo.BrokerMetadata, _ int16, e2e kgo.BrokerE2E) {
	if err := e2e.Err(); err != nil {
		w.broke(meta, err)
	}
}

func (w *watch) broke(meta kgo.BrokerMetadata, err error) {
	if w.closing.Load() || !w.made.Load() || errors.Is(err, context.Canceled) {
		return
	}
	w.mu.Lock()
	w.down[meta.NodeID] = true
	w.mu.Unlock()
	if w.lost == nil {
		return
	}
	if err = Cause(err); !driver.IsContract(err) {
		err = fmt.Errorf("%w: %w", driver.ErrDisconnected, err)
	}
	w.lost(fmt.Errorf("%s: %w", called(meta), err))
}

// called returns a broker's name; seed brokers have no number.
func called(meta kgo.BrokerMetadata) string {
	if meta.NodeID < 0 {
		return "broker " + net.JoinHostPort(meta.Host, strconv.Itoa(int(meta.Port)))
	}
	return fmt.Sprintf("broker %d", meta.NodeID)
}
