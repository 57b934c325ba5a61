package natsconn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
)

// varzSubject is a server's own request for its settings. It belongs to the
// system account; weir's embedded server exports it, and an operator may.
const varzSubject = "$SYS.REQ.SERVER.PING.VARZ"

// Time limits of asking for settings.
const (
	varzLimit = 2 * time.Second        // until all expected have answered
	varzQuiet = 200 * time.Millisecond // without an answer, then it is asked again or, where it is not known how many are to come, over
	varzBytes = 1 << 20                // of one answer over HTTP
)

// A Server is what one server says about itself.
type Server struct {
	Name         string        // unique in its cluster
	Version      string        // such as 2.15.2
	SyncAlways   bool          // JetStream syncs files before it confirms
	SyncInterval time.Duration // how often it does otherwise
}

// varz is the part read of a server's /varz.
type varz struct {
	Name      string `json:"server_name"`
	Version   string `json:"version"`
	JetStream struct {
		Config *struct {
			SyncAlways   bool          `json:"sync_always"`
			SyncInterval time.Duration `json:"sync_interval"`
		} `json:"config"`
	} `json:"jetstream"`
}

func (v *varz) server() (Server, bool) {
	if v.Name == "" || v.JetStream.Config == nil {
		return Server{}, false
	}
	return Server{v.Name, v.Version, v.JetStream.Config.SyncAlways, v.JetStream.Config.SyncInterval}, true
}

// Base returns what every NATS server tells its clients, after a round trip to
// it. It fails with ErrUnreachable.
func (l *Link) Base(ctx context.Context) (driver.Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, varzLimit)
	defer cancel()
	if err := l.FlushWithContext(ctx); err != nil {
		return driver.Facts{}, fmt.Errorf("asking the server: %w: %w", driver.ErrUnreachable, err)
	}
	f := driver.Facts{
		Name: "nats-server", Version: l.ConnectedServerVersion(), Nodes: 1,
		Settings: map[string]string{"max_payload": driver.FormatSize(l.MaxPayload())},
	}
	if c := l.ConnectedClusterName(); c != "" {
		f.Settings["cluster"] = c
		// Those the server announces, itself included.
		f.Nodes = max(1, len(l.DiscoveredServers()), len(l.Servers()))
	}
	return f, nil
}

// AskServers asks the servers for their settings, by name: first over this
// connection, then at the monitoring addresses (http://host:8222). want are the
// names that must be among the answers; it stops asking when they are, and asks
// again until then: in a cluster that has just come up an answer may be lost. Servers
// that do not answer, or say nothing of JetStream, are absent. It takes at most
// some seconds.
func (l *Link) AskServers(ctx context.Context, monitor []string, want []string) map[string]Server {
	ctx, cancel := context.WithTimeout(ctx, varzLimit)
	defer cancel()
	found := map[string]Server{}
	l.askBySubject(ctx, found, want)
	for _, m := range monitor {
		if s, err := askByHTTP(ctx, m); err == nil {
			found[s.Name] = s
		}
	}
	return found
}

func haveAll(found map[string]Server, want []string) bool {
	for _, w := range want {
		if _, ok := found[w]; !ok {
			return false
		}
	}
	return len(want) > 0
}

func (l *Link) askBySubject(ctx context.Context, found map[string]Server, want []string) {
	sub, err := l.SubscribeSync(l.NewInbox())
	if err != nil {
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	for asked := false; !haveAll(found, want); {
		if !asked && l.PublishRequest(varzSubject, sub.Subject, nil) != nil {
			return
		}
		next, cancel := context.WithTimeout(ctx, varzQuiet)
		m, err := sub.NextMsgWithContext(next)
		quiet := next.Err() != nil && ctx.Err() == nil
		cancel()
		asked = err == nil
		switch {
		case err != nil && quiet && (len(found) == 0 || len(want) > 0):
			continue
		case err != nil || Nobody(m): // whom nobody answers has no such service
			return
		}
		var answer struct {
			Data *varz `json:"data"`
		}
		if json.Unmarshal(m.Data, &answer) != nil || answer.Data == nil {
			continue
		}
		if s, ok := answer.Data.server(); ok {
			found[s.Name] = s
		}
	}
}

func askByHTTP(ctx context.Context, monitor string) (Server, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(monitor, "/")+"/varz", nil)
	if err != nil {
		return Server{}, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return Server{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	var v varz
	if err := json.NewDecoder(io.LimitReader(resp.Body, varzBytes)).Decode(&v); err != nil {
		return Server{}, err
	}
	s, ok := v.server()
	if !ok {
		return Server{}, errors.New("no JetStream settings")
	}
	return s, nil
}

// Dropped returns the fault of a subscription that the client could not hand its
// messages to fast enough. It has no count: faults are tallied by their texts.
func Dropped(sub *nats.Subscription, err error) error {
	if !errors.Is(err, nats.ErrSlowConsumer) || sub == nil {
		return Cause(err)
	}
	if strings.HasPrefix(sub.Subject, nats.InboxPrefix) {
		return fmt.Errorf("messages dropped by the client: %w", err)
	}
	return fmt.Errorf("%s: messages dropped by the client: %w", sub.Subject, err)
}
