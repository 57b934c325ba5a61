package rocketmq

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha1" // required by the servers for signatures
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

// Requests that the driver makes itself, because the client has no calls for them. See
// https://github.com/apache/rocketmq/blob/rocketmq-all-5.5.0/remoting/src/main/java/org/apache/rocketmq/remoting/protocol/RequestCode.java
const (
	queryOffset  = 14
	updateOffset = 15
	makeTopic    = 17
	brokerConfig = 26
	brokerState  = 28
	offsetAtTime = 29
	maxOffset    = 30
	minOffset    = 31
	consumersOf  = 38
	topicRoute   = 105
	clusterInfo  = 106
	makeGroup    = 200
	deleteGroup  = 207
	deleteTopic  = 215 // on a broker
	forgetTopic  = 216 // on a name server
	groupConfig  = 352
)

// Codes of answers.
const (
	success       = 0
	systemBusy    = 2
	notSupported  = 3
	flushTimeout  = 10
	noSlave       = 11
	slaveTimeout  = 12
	illegal       = 13
	unavailable   = 14
	noPermission  = 16
	noTopic       = 17
	offsetUnknown = 22
	noGroup       = 26
	tooFewInSync  = 2050
)

// A refusal is an error answer.
type refusal struct {
	code   int
	remark string
}

func (r *refusal) Error() string { return fmt.Sprintf("code %d: %s", r.code, r.remark) }

// varied matches details that differ between answers of the same kind.
var varied = regexp.MustCompile(`, period in queue: \d+ms, size of queue: \d+|\s*(For more information|See http)\S.*`)

// is maps an answer's code to the contract's error.
func is(code int) error {
	switch code {
	case noPermission:
		return driver.ErrAuth
	case noTopic, notSupported, noGroup:
		return driver.ErrUnsupported
	case illegal:
		return driver.ErrTooLarge
	case systemBusy:
		return driver.ErrOverloaded
	case unavailable, tooFewInSync:
		return driver.ErrBlocked
	case flushTimeout, noSlave, slaveTimeout:
		return driver.ErrTimeout
	}
	return nil
}

// answered reports whether err is an answer with that code.
func answered(err error, code int) bool {
	var r *refusal
	return errors.As(err, &r) && r.code == code
}

// words maps the errors of requests to the contract's.
var words = failure.Map{
	Is: func(err error) error {
		var r *refusal
		if errors.As(err, &r) {
			return is(r.code)
		}
		return clientError(err)
	},
	Hide: varied,
}

// A header precedes the body of a request or an answer.
type header struct {
	Code      int               `json:"code"`
	Language  string            `json:"language"`
	Version   int               `json:"version"`
	Opaque    int               `json:"opaque"`
	Flag      int               `json:"flag"`
	Remark    string            `json:"remark,omitempty"`
	ExtFields map[string]string `json:"extFields,omitempty"`
	Serialize string            `json:"serializeTypeCurrentRPC"`
}

// mostAnswer limits an answer, in bytes. The answers to these requests are small.
const mostAnswer = 16 << 20

// A line is a connection for sequential requests to one server, used by one goroutine.
type line struct {
	net.Conn
	cfg *Config
	n   int
}

// dial connects to a server, within ctx and the option timeout.
func (c *Config) dial(ctx context.Context, address string) (*line, error) {
	d := net.Dialer{Timeout: c.Timeout}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, words.Unreachable(err))
	}
	return &line{Conn: conn, cfg: c}, nil
}

// on calls ask with a separate connection to a server, within ctx and the option timeout.
func (c *Config) on(ctx context.Context, address string, ask func(ctx context.Context, l *line) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	l, err := c.dial(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	return ask(ctx, l)
}

// ask makes one request. If the server answers with an error, it is a *refusal; a lost connection
// is ErrUnreachable.
func (l *line) ask(ctx context.Context, code int, fields map[string]string, body []byte) (map[string]string, []byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	l.n++
	a, answer, err := l.exchange(header{Code: code, Language: "GO", Opaque: l.n, ExtFields: l.sign(fields, body), Serialize: "JSON"}, body)
	switch {
	case ctx.Err() != nil:
		return nil, nil, words.Unreachable(ctx.Err())
	case err != nil:
		return nil, nil, words.Unreachable(err)
	case a.Code != success:
		return nil, nil, words.Cause(&refusal{a.Code, failure.Brief(a.Remark)})
	}
	return a.ExtFields, answer, nil
}

// exchange sends a request and reads its answer. Requests from the server are ignored meanwhile.
func (l *line) exchange(h header, body []byte) (header, []byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return h, nil, err
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(text)+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(text))) // with the code for JSON, 0, in the first byte
	if _, err := l.Write(slices.Concat(b, text, body)); err != nil {
		return h, nil, err
	}
	for {
		a, answer, err := read(l)
		if err != nil || a.Opaque == h.Opaque && a.Flag&1 == 1 {
			return a, answer, err
		}
	}
}

// read reads an answer.
func read(r io.Reader) (h header, body []byte, err error) {
	var sizes [8]byte
	if _, err := io.ReadFull(r, sizes[:]); err != nil {
		return h, nil, err
	}
	all, head := binary.BigEndian.Uint32(sizes[:]), binary.BigEndian.Uint32(sizes[4:])
	if all < 4 || all > mostAnswer || head > all-4 {
		return h, nil, fmt.Errorf("an answer of %d bytes with a header of %d", all, head)
	}
	b := make([]byte, all-4)
	if _, err := io.ReadFull(r, b); err != nil {
		return h, nil, err
	}
	return h, b[head:], json.Unmarshal(b[:head], &h)
}

// sign returns a request's fields with the user's signature, if there is a user: over the values of
// the fields, sorted by name, and the body.
func (l *line) sign(fields map[string]string, body []byte) map[string]string {
	if l.cfg.User == "" {
		return fields
	}
	all := map[string]string{"AccessKey": l.cfg.User}
	maps.Copy(all, fields)
	mac := hmac.New(sha1.New, []byte(l.cfg.Password.Reveal()))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		_, _ = io.WriteString(mac, all[name])
	}
	_, _ = mac.Write(body)
	all["Signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return all
}

// number parses a field of an answer.
func number(fields map[string]string, name string) (int64, error) {
	n, err := strconv.ParseInt(fields[name], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the answer has no number %s: %w", name, driver.ErrUnsupported)
	}
	return n, nil
}

// A broker is a group of servers with one name: a master, and slaves that replicate it.
type broker struct {
	Name    string           `json:"brokerName"`
	Servers map[int64]string `json:"brokerAddrs"` // host:port by ID; 0 is the master
}

func (b broker) master() string { return b.Servers[0] }

// A queue is a partition of a topic.
type queue struct {
	broker string
	id     int
}

// A route is the location of a topic.
type route struct {
	brokers map[string]broker
	queues  []queue // by broker and number: a partition is an index here
}

// bare matches an unquoted number used as a field name, as the servers write it.
var bare = regexp.MustCompile(`([{,])(\d+):`)

// decode decodes the servers' JSON dialect.
func decode(body []byte, to any) error {
	return json.Unmarshal(bare.ReplaceAll(body, []byte(`$1"$2":`)), to)
}

// brokers asks a name server for the brokers, sorted by name.
func (c *Config) brokers(ctx context.Context) (all []broker, err error) {
	err = c.names(ctx, func(ctx context.Context, l *line) error {
		_, body, err := l.ask(ctx, clusterInfo, nil, nil)
		if err != nil {
			return err
		}
		var info struct {
			Table map[string]broker `json:"brokerAddrTable"`
		}
		if err := decode(body, &info); err != nil {
			return err
		}
		all = slices.SortedFunc(maps.Values(info.Table), func(a, b broker) int { return cmp.Compare(a.Name, b.Name) })
		return nil
	})
	return all, err
}

// route asks a name server for a topic's location. A missing topic is ErrUnsupported.
func (c *Config) route(ctx context.Context, topic string) (r route, err error) {
	err = c.names(ctx, func(ctx context.Context, l *line) (err error) {
		r, err = l.route(ctx, topic)
		return err
	})
	return r, err
}

func (l *line) route(ctx context.Context, topic string) (r route, err error) {
	_, body, err := l.ask(ctx, topicRoute, map[string]string{"topic": topic}, nil)
	if err != nil {
		return r, err
	}
	var info struct {
		Brokers []broker `json:"brokerDatas"`
		Queues  []struct {
			Broker string `json:"brokerName"`
			Read   int    `json:"readQueueNums"`
		} `json:"queueDatas"`
	}
	if err := decode(body, &info); err != nil {
		return r, err
	}
	r.brokers = map[string]broker{}
	for _, b := range info.Brokers {
		r.brokers[b.Name] = b
	}
	for _, q := range info.Queues {
		for id := range q.Read {
			r.queues = append(r.queues, queue{q.Broker, id})
		}
	}
	slices.SortFunc(r.queues, func(a, b queue) int { return cmp.Or(cmp.Compare(a.broker, b.broker), cmp.Compare(a.id, b.id)) })
	return r, nil
}

// names queries the first name server that answers.
func (c *Config) names(ctx context.Context, ask func(ctx context.Context, l *line) error) error {
	at, err := nameServers.All("address", c.Address)
	if err != nil {
		return err
	}
	for _, e := range at {
		if err = c.on(ctx, e.HostPort(), ask); !errors.Is(err, driver.ErrUnreachable) {
			break
		}
	}
	return err
}

// settings asks a server for its configuration.
func (l *line) settings(ctx context.Context) (map[string]string, error) {
	_, body, err := l.ask(ctx, brokerConfig, nil, nil)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for row := range bytes.Lines(body) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(row), []byte("="))
		all[string(name)] = string(value)
	}
	return all, nil
}

// version asks a server for its version.
func (l *line) version(ctx context.Context) (string, error) {
	_, body, err := l.ask(ctx, brokerState, nil, nil)
	if err != nil {
		return "", err
	}
	var state struct {
		Table map[string]string `json:"table"`
	}
	err = decode(body, &state)
	return state.Table["brokerVersionDesc"], err
}
