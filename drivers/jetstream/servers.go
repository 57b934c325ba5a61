package jetstream

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/weirmq/weir/drivers/internal/httpapi"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// varzSubject is a server's own request for its settings. It belongs to the
// system account; weir's embedded server exports it, and an operator may.
const varzSubject = "$SYS.REQ.SERVER.PING.VARZ"

// Time limits of asking for settings.
const (
	varzLimit = 2 * time.Second        // until all expected have answered
	varzQuiet = 200 * time.Millisecond // without an answer, then it is asked again or, where it is not known how many are to come, over
)

// syncing is how a server with JetStream syncs its files.
type syncing struct {
	SyncAlways   bool          `json:"sync_always"`   // before it confirms
	SyncInterval time.Duration `json:"sync_interval"` // otherwise

	address string // that the server tells its clients, host:port
}

// varz is the part read of a server's /varz.
type varz struct {
	Name      string `json:"server_name"` // unique in its cluster
	Host      string `json:"host"`        // that it listens on
	Port      int    `json:"port"`
	JetStream struct {
		Config *syncing `json:"config"`
	} `json:"jetstream"`
}

// into adds what a server with JetStream says to found.
func (v *varz) into(found map[string]syncing) {
	if c := v.JetStream.Config; v.Name != "" && c != nil {
		c.address = net.JoinHostPort(v.Host, strconv.Itoa(v.Port))
		found[v.Name] = *c
	}
}

// askServers asks the servers for their settings, by name: first over the control
// connection, then at the monitoring addresses. want are the names that must be among
// the answers; it stops asking when they are, and asks again until then: in a cluster
// that has just come up an answer may be lost. Servers that do not answer, or say
// nothing of JetStream, are absent. It takes at most some seconds.
func (c *conn) askServers(ctx context.Context, want []string) map[string]syncing {
	ctx, cancel := context.WithTimeout(ctx, varzLimit)
	defer cancel()
	found := map[string]syncing{}
	c.askBySubject(ctx, found, want)
	web := httpapi.New("a NATS server", nil, varzLimit)
	defer web.Close()
	addresses, _ := natsconn.Monitors.All("monitor", c.cfg.Monitor)
	for _, a := range addresses {
		var v varz
		if web.Get(ctx, a.String(), "/varz", nil, &v) == nil {
			v.into(found)
		}
	}
	return found
}

func haveAll(found map[string]syncing, want []string) bool {
	return len(want) > 0 && !slices.ContainsFunc(want, func(w string) bool {
		_, have := found[w]
		return !have
	})
}

func (c *conn) askBySubject(ctx context.Context, found map[string]syncing, want []string) {
	sub, err := c.link.SubscribeSync(c.link.NewInbox())
	if err != nil {
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	for asked := false; !haveAll(found, want); {
		if !asked && c.link.PublishRequest(varzSubject, sub.Subject, nil) != nil {
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
		case err != nil || natsconn.NoResponders(m): // there is no such service
			return
		}
		var answer struct {
			Data varz `json:"data"`
		}
		if json.Unmarshal(m.Data, &answer) == nil {
			answer.Data.into(found)
		}
	}
}
