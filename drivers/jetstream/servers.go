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

// varzSubject is a server's request for its settings. It belongs to the system account; weir's
// embedded server exports it, and an operator may.
const varzSubject = "$SYS.REQ.SERVER.PING.VARZ"

// Time limits for reading settings.
const (
	varzLimit = 2 * time.Second        // until all expected servers have answered
	varzQuiet = 200 * time.Millisecond // of silence, until the request is repeated or, with unknown servers, ends
)

// syncing describes how a JetStream server syncs its files.
type syncing struct {
	SyncAlways   bool          `json:"sync_always"`   // before confirming
	SyncInterval time.Duration `json:"sync_interval"` // otherwise

	address string // as announced to clients, host:port
}

// varz is the part of a server's /varz that is used.
type varz struct {
	Name      string `json:"server_name"` // unique in its cluster
	Host      string `json:"host"`        // listening address
	Port      int    `json:"port"`
	JetStream struct {
		Config *syncing `json:"config"`
	} `json:"jetstream"`
}

// into adds a JetStream server's settings to found.
func (v *varz) into(found map[string]syncing) {
	if c := v.JetStream.Config; v.Name != "" && c != nil {
		c.address = net.JoinHostPort(v.Host, strconv.Itoa(v.Port))
		found[v.Name] = *c
	}
}

// askServers reads the servers' settings by name: over the control connection first, then at the
// monitoring addresses. want lists the expected names; it repeats the request until all have
// answered, because an answer may be lost in a cluster that has just come up. Servers that do not
// answer, or report nothing about JetStream, are absent. It takes a few seconds at most.
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
		case err != nil || natsconn.NoResponders(m): // no such service
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
