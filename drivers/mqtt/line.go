package mqtt

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	v3 "github.com/eclipse/paho.mqtt.golang/packets"

	v5 "github.com/eclipse/paho.golang/paho"
	"github.com/eclipse/paho.golang/paho/session/state"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/sockets"
)

// closeWait is how long closing a connection may wait for the network.
const closeWait = 500 * time.Millisecond

// A client is one of the two MQTT clients, connected. One goroutine at a time publishes.
type client interface {
	// publish starts to send m, and does not keep it after plan.complete. It may wait for flush.
	publish(topic string, qos byte, m *driver.Message)
	// flush sends what was published.
	flush()
	// subscribe returns what the server granted for each filter: a level, or a value of at least
	// refused.
	subscribe(ctx context.Context, qos byte, filters ...string) ([]byte, error)
	// ask makes a round trip: the answer follows everything sent before.
	ask(ctx context.Context) error
	// end disconnects and waits for the client's goroutines, at most closeWait. With forget,
	// version 5 also ends a kept session.
	end(forget bool)
	// over completes the messages in flight with why, and accepts no more.
	over(why error)
}

// A plan describes a connection.
type plan struct {
	id     string // client ID; "": chosen by the server
	keep   bool   // the session outlives the connection
	ahead  uint16 // maximum of unacknowledged messages from the server; 0: no limit
	memory *state.State

	take     func(topic string, payload []byte, again bool) bool // reports whether to acknowledge
	complete func(*driver.Message, error)
}

// limits are the limits in the server's CONNACK; 0: not given.
type limits struct {
	inflight uint16
	packet   uint32
	qos      byte
}

// A line is one connection.
type line struct {
	client
	plan
	most   limits
	socket net.Conn
	life   context.Context // ends with the connection; its cause is the reason
	stop   context.CancelCauseFunc
	once   sync.Once
}

// fail ends a line and everything in flight on it.
func (l *line) fail(why error) {
	l.once.Do(func() {
		_ = l.socket.Close()
		l.stop(why)
		l.over(why)
	})
}

// close closes a line that is no longer needed, and with forget its session.
func (l *line) close(forget bool) {
	late := time.AfterFunc(closeWait, func() { _ = l.socket.Close() })
	defer late.Stop()
	l.end(forget)
	l.fail(driver.ErrClosed)
}

// during returns a context that ends with ctx or with the line.
func (l *line) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.life, func() { cancel(context.Cause(l.life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// dial connects within ctx and the option timeout. It maps errors to the contract's.
func (c *Config) dial(ctx context.Context, set *sockets.Set, p plan) (*line, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	at, err := servers.Parse(c.Address)
	if err != nil {
		return nil, err
	}
	security, err := at.TLS(c.TLS)
	if err != nil {
		return nil, err
	}
	l := &line{plan: p, most: limits{qos: 2}}
	l.life, l.stop = context.WithCancelCause(context.Background())
	l.socket, err = set.Dial(ctx, "tcp", at.HostPort(), c.Timeout)
	if err == nil && security != nil {
		secure := tls.Client(l.socket, security)
		l.socket, err = secure, secure.HandshakeContext(ctx)
	}
	if err == nil {
		connect := c.five
		if c.Version == version3 {
			connect = c.three
		}
		late := context.AfterFunc(ctx, set.Kill)
		err = connect(ctx, l)
		late()
	}
	if err != nil {
		set.Kill()
		l.stop(err)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("%s: %w", at.HostPort(), errorMap.Unreachable(err))
	}
	return l, nil
}

// name returns a unique client ID.
func (c *conn) name(end string) string {
	return strings.Join([]string{"weir", c.run.ID, end, rand.Text()[:8]}, "-")
}

// nothing is a filter for round trips. weir never publishes to it.
const nothing = "weir/nothing"

// cause returns why ctx ended, or err if it has not.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// Values from refused up are reasons, not levels.
const refused = 0x80

// A reason is a reason code of a version 5 server.
type reason byte

// reasons lists the codes from chapter 2.4 of the standard.
var reasons = map[reason]struct {
	text string
	is   error
}{
	0x80: {"unspecified error", nil},
	0x81: {"malformed packet", driver.ErrUnsupported},
	0x82: {"protocol error", driver.ErrUnsupported},
	0x83: {"implementation specific error", nil},
	0x84: {"unsupported protocol version", driver.ErrUnsupported},
	0x85: {"client identifier not valid", driver.ErrUnsupported},
	0x86: {"bad user name or password", driver.ErrAuth},
	0x87: {"not authorized", driver.ErrAuth},
	0x88: {"server unavailable", driver.ErrUnreachable},
	0x89: {"server busy", driver.ErrOverloaded},
	0x8A: {"banned", driver.ErrAuth},
	0x8B: {"server shutting down", driver.ErrDisconnected},
	0x8D: {"keep alive timeout", driver.ErrDisconnected},
	0x8E: {"session taken over", driver.ErrDisconnected},
	0x8F: {"topic filter invalid", driver.ErrUnsupported},
	0x90: {"topic name invalid", driver.ErrUnsupported},
	0x93: {"receive maximum exceeded", driver.ErrOverloaded},
	0x95: {"packet too large", driver.ErrTooLarge},
	0x96: {"message rate too high", driver.ErrOverloaded},
	0x97: {"quota exceeded", driver.ErrOverloaded},
	0x98: {"administrative action", driver.ErrDisconnected},
	0x9B: {"QoS not supported", driver.ErrUnsupported},
	0x9E: {"shared subscriptions not supported", driver.ErrUnsupported},
	0x9F: {"connection rate exceeded", driver.ErrOverloaded},
}

// Error returns the standard's text.
func (r reason) Error() string {
	return fmt.Sprintf("reason code 0x%02X (%s)", byte(r), reasons[r].text)
}

// refusals maps the answers to CONNECT in version 3.1.1.
var refusals = failure.Table{
	v3.ErrorRefusedBadUsernameOrPassword: driver.ErrAuth, v3.ErrorRefusedNotAuthorised: driver.ErrAuth,
	v3.ErrorRefusedBadProtocolVersion: driver.ErrUnsupported, v3.ErrorRefusedIDRejected: driver.ErrUnsupported,
	v3.ErrorRefusedServerUnavailable: driver.ErrUnreachable,
}

// errorMap maps errors to the contract's. The client itself refuses what the server does not support.
var errorMap = failure.Map{Is: func(err error) error {
	var r reason
	if errors.As(err, &r) {
		return reasons[r].is
	}
	if errors.Is(err, v5.ErrInvalidArguments) {
		return driver.ErrUnsupported
	}
	return refusals.Is(err)
}}
