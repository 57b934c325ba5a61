package nsq

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/httpapi"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// Time limits for requests to servers.
const (
	connectLimit = 10 * time.Second // to connect
	askLimit     = 10 * time.Second // for one HTTP request
	readyLimit   = 30 * time.Second // until the servers of a topic are known and subscribed to
	lookupPause  = 20 * time.Millisecond
)

// A node is one nsqd.
type node struct {
	address string // TCP, host:port
	api     string // base URL of its HTTP interface

	maxMessage, maxBody atomic.Int64 // limits of a message and of a batch, in bytes
}

// An identityAnswer is nsqd's answer to IDENTIFY.
type identityAnswer struct {
	Version      string `json:"version"`
	TLS          bool   `json:"tls_v1"`
	AuthRequired bool   `json:"auth_required"`
}

// A listed is nsqlookupd's entry for an nsqd.
type listed struct {
	Broadcast string `json:"broadcast_address"`
	TCPPort   int    `json:"tcp_port"`
	HTTPPort  int    `json:"http_port"`
}

func (l listed) node() *node {
	return &node{
		address: net.JoinHostPort(l.Broadcast, strconv.Itoa(l.TCPPort)),
		api:     "http://" + net.JoinHostPort(l.Broadcast, strconv.Itoa(l.HTTPPort)),
	}
}

// find returns the run's servers: those of the option address, or those that lookupd lists.
func (c *conn) find(ctx context.Context) ([]*node, error) {
	var known []*node
	if len(c.lookupds) > 0 {
		var err error
		if known, err = c.lookup(ctx, ""); err != nil {
			return nil, err
		}
		if len(c.cfg.Address) == 0 {
			if len(known) == 0 {
				return nil, fmt.Errorf("%w: lookupd lists no nsqd", driver.ErrUnreachable)
			}
			return known, nil
		}
	}
	addresses := c.cfg.Address
	if len(addresses) == 0 {
		addresses = []string{defaultAddress}
	}
	ends, err := nsqds.All("address", addresses)
	if err != nil {
		return nil, err
	}
	apis, err := webs.All("http", c.cfg.HTTP)
	if err != nil {
		return nil, err
	}
	nodes := make([]*node, len(ends))
	for i, e := range ends {
		n := &node{address: e.HostPort()}
		switch at := slices.IndexFunc(known, func(k *node) bool { return k.address == n.address }); {
		case len(apis) > 0:
			n.api = apis[i].String()
		case at >= 0:
			n.api = known[at].api
		default:
			port, _ := strconv.Atoi(e.Port) // the port of a URL is numeric
			n.api = "http://" + net.JoinHostPort(e.Host, strconv.Itoa(port+1))
		}
		nodes[i] = n
	}
	return nodes, nil
}

// lookup returns the servers of a topic, or of all topics for "", combined from all nsqlookupds. It
// fails if none of them answers.
func (c *conn) lookup(ctx context.Context, topic string) ([]*node, error) {
	path, query := "/nodes", url.Values(nil)
	if topic != "" {
		path, query = "/lookup", url.Values{"topic": {topic}}
	}
	var nodes []*node
	var errs []error
	for _, l := range c.lookupds {
		var said struct{ Producers []listed }
		err := c.api.Get(ctx, l, path, query, &said)
		if isMissing(err) {
			continue // this one does not know the topic
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("lookupd: %w", err))
			continue
		}
		for _, p := range said.Producers {
			n := p.node()
			if i := slices.IndexFunc(c.nodes, func(k *node) bool { return k.address == n.address }); i >= 0 {
				n = c.nodes[i]
			}
			if !slices.ContainsFunc(nodes, func(k *node) bool { return k.address == n.address }) {
				nodes = append(nodes, n)
			}
		}
	}
	if len(errs) == len(c.lookupds) {
		return nil, errors.Join(errs...)
	}
	slices.SortFunc(nodes, func(a, b *node) int { return bytes.Compare([]byte(a.address), []byte(b.address)) })
	return nodes, nil
}

// serving returns the servers that have a topic. If weir has created the topic on every server, it
// waits until lookupd lists them all.
func (c *conn) serving(ctx context.Context, topic string) ([]*node, error) {
	if len(c.lookupds) == 0 {
		if !c.run.Existing {
			return c.nodes, nil
		}
		var have []*node
		for _, n := range c.nodes {
			s, err := c.stats(ctx, n, topic, "")
			if err != nil {
				return nil, err
			}
			if len(s.Topics) > 0 {
				have = append(have, n)
			}
		}
		return have, c.some(have, topic)
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		have, err := c.lookup(ctx, topic)
		if err != nil {
			return nil, err
		}
		if c.run.Existing {
			return have, c.some(have, topic)
		}
		if len(have) >= len(c.nodes) {
			return have, nil
		}
		if !retry.Pause(ctx, lookupPause) {
			return nil, fmt.Errorf("lookupd lists topic %s at %d of %d servers after %v: %w", topic, len(have), len(c.nodes), readyLimit, driver.ErrTimeout)
		}
	}
}

// some returns an error if no server has a topic.
func (c *conn) some(have []*node, topic string) error {
	if len(have) == 0 {
		return fmt.Errorf("no server has topic %s: %w", topic, driver.ErrUnsupported)
	}
	return nil
}

// check queries a server through both of its interfaces, and checks that it accepts this client.
func (c *conn) check(ctx context.Context, n *node) error {
	id, err := c.identify(ctx, n.address)
	if err != nil {
		return fmt.Errorf("%s: %w", n.address, err)
	}
	switch {
	case c.settings.TlsV1 && !id.TLS:
		return fmt.Errorf("%s: offers no TLS: %w", n.address, driver.ErrUnsupported)
	case id.AuthRequired && c.settings.AuthSecret == "":
		return fmt.Errorf("%s: %w: the server wants a secret (option token)", n.address, driver.ErrAuth)
	case id.AuthRequired, id.TLS && c.settings.TlsV1:
		l, _, err := c.dial(ctx, n.address, quiet{})
		if err != nil {
			return fmt.Errorf("%s: %w", n.address, err)
		}
		_ = l.Close()
	}
	if err := c.limits(ctx, n); err != nil {
		if errors.Is(err, driver.ErrUnreachable) || errors.Is(err, driver.ErrUnsupported) {
			return fmt.Errorf("HTTP interface of %s: %w (option http says where it is)", n.address, err)
		}
		return fmt.Errorf("HTTP interface of %s: %w", n.address, err)
	}
	return nil
}

// limits reads a server's message size limits.
func (c *conn) limits(ctx context.Context, n *node) error {
	var info struct {
		TCPPort int `json:"tcp_port"`
	}
	if err := c.api.Get(ctx, n.api, "/info", nil, &info); err != nil {
		return err
	}
	// If one address was derived from the other, both must belong to the same server.
	if _, port, _ := net.SplitHostPort(n.address); len(c.cfg.HTTP) == 0 && info.TCPPort > 0 && strconv.Itoa(info.TCPPort) != port {
		return fmt.Errorf("%w: %s is that of the server at port %d", driver.ErrUnreachable, n.api, info.TCPPort)
	}
	var needs int
	if err := c.option(ctx, n, "tls_required", &needs); err != nil {
		return err
	}
	if needs != 0 && !c.settings.TlsV1 {
		return fmt.Errorf("the server wants TLS (options tls.*): %w", driver.ErrUnsupported)
	}
	var message, body int64
	if err := c.option(ctx, n, "max_msg_size", &message); err != nil {
		return err
	}
	if err := c.option(ctx, n, "max_body_size", &body); err != nil {
		return err
	}
	n.maxMessage.Store(message)
	n.maxBody.Store(body)
	return nil
}

// option reads one setting of a running nsqd.
func (c *conn) option(ctx context.Context, n *node, name string, into any) error {
	if err := c.api.Get(ctx, n.api, "/config/"+name, nil, into); err != nil {
		if e := (*httpapi.Refusal)(nil); errors.As(err, &e) {
			return fmt.Errorf("the server does not tell its setting %s, it is too old: %w: %w", name, driver.ErrUnsupported, err)
		}
		return fmt.Errorf("setting %s: %w", name, err)
	}
	return nil
}

// mostIdentity limits the answer to IDENTIFY: a server other than nsqd may announce gigabytes.
const mostIdentity = 64 << 10

// identify asks for a server's identity on a separate connection before any secret is sent: the
// client would send it unencrypted to a server without TLS.
func (c *conn) identify(ctx context.Context, address string) (identityAnswer, error) {
	var id identityAnswer
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	var d net.Dialer
	s, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return id, words.Unreachable(err)
	}
	defer func() { _ = s.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	hello, err := client.Identify(map[string]any{
		"client_id": c.settings.ClientID, "hostname": c.settings.Hostname, "user_agent": c.settings.UserAgent,
		"feature_negotiation": true, "tls_v1": c.settings.TlsV1, "heartbeat_interval": -1,
		"msg_timeout": c.settings.MsgTimeout.Milliseconds(),
	})
	if err != nil {
		return id, fmt.Errorf("asking who it is: %w", err)
	}
	b := bytes.NewBuffer(slices.Clone(client.MagicV2))
	_, _ = hello.WriteTo(b)
	if _, err := s.Write(b.Bytes()); err != nil {
		return id, words.Unreachable(err)
	}
	kind, answer, err := frame(s)
	switch {
	case err != nil && ctx.Err() != nil:
		return id, fmt.Errorf("%w: no answer", driver.ErrUnreachable)
	case err != nil:
		return id, words.Unreachable(err)
	case kind == client.FrameTypeError && bytes.Contains(answer, []byte("msg timeout")):
		return id, &driver.OptionError{Name: "msg-timeout", Err: refusal(string(answer))}
	case kind == client.FrameTypeError:
		return id, refusal(string(answer))
	case json.Unmarshal(answer, &id) != nil || id.Version == "":
		return id, fmt.Errorf("%w: what answers is not nsqd", driver.ErrUnreachable)
	}
	return id, nil
}

// frame reads one frame of the protocol (https://nsq.io/clients/tcp_protocol_spec.html).
func frame(r io.Reader) (kind int32, body []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, fmt.Errorf("reading its answer: %w", err)
	}
	size := int32(binary.BigEndian.Uint32(head[:]))
	if size < 4 || size > mostIdentity {
		return 0, nil, errors.New("what answers is not nsqd")
	}
	body = make([]byte, size-4)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, fmt.Errorf("reading its answer: %w", err)
	}
	return int32(binary.BigEndian.Uint32(head[4:])), body, nil
}

// dial connects with the client library, which takes no context: a connection that comes too late
// is closed.
func (c *conn) dial(ctx context.Context, address string, events client.ConnDelegate) (*client.Conn, *client.IdentifyResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	l := client.NewConn(address, c.settings, events)
	var id *client.IdentifyResponse
	var err error
	if !gate.Within(ctx, func() { id, err = l.Connect() }, func() { _ = l.Close() }) {
		return nil, nil, fmt.Errorf("%w: connecting to %s: %w", driver.ErrUnreachable, address, ctx.Err())
	}
	switch {
	case err != nil:
		_ = l.Close()
		return nil, nil, connecting(err)
	case id == nil:
		_ = l.Close()
		return nil, nil, fmt.Errorf("the server negotiates no features, it is too old: %w", driver.ErrUnsupported)
	case c.settings.TlsV1 && !id.TLSv1:
		_ = l.Close()
		return nil, nil, fmt.Errorf("the server offers no TLS: %w", driver.ErrUnsupported)
	}
	return l, id, nil
}

// quiet ignores all callbacks of a connection. Other delegates embed it.
type quiet struct{}

func (quiet) OnResponse(*client.Conn, []byte)                 {}
func (quiet) OnError(*client.Conn, []byte)                    {}
func (quiet) OnMessage(*client.Conn, *client.Message)         {}
func (quiet) OnMessageFinished(*client.Conn, *client.Message) {}
func (quiet) OnMessageRequeued(*client.Conn, *client.Message) {}
func (quiet) OnBackoff(*client.Conn)                          {}
func (quiet) OnContinue(*client.Conn)                         {}
func (quiet) OnResume(*client.Conn)                           {}
func (quiet) OnIOError(c *client.Conn, _ error)               { _ = c.Close() }
func (quiet) OnHeartbeat(*client.Conn)                        {}
func (quiet) OnClose(*client.Conn)                            {}

var _ client.ConnDelegate = quiet{}
