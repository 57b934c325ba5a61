package rabbitmqstream

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/logs"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/gate"
	"github.com/weirmq/weir/drivers/internal/rabbitserver"
)

// endLimit limits the wait for the client to close a connection.
const endLimit = 2 * time.Second

// A mute discards the client's log, which would go to standard error. Its information is also
// available as errors and events.
type mute struct{}

func (mute) Info(string, ...any)  {}
func (mute) Error(string, ...any) {}
func (mute) Debug(string, ...any) {}
func (mute) Warn(string, ...any)  {}

// silence disables the client's log, for the whole process.
var silence = sync.OnceFunc(func() { logs.SetLogger(mute{}) })

// errAlarm is the server's refusal of a producer while it is short of memory or disk.
var errAlarm = errors.New("the server makes no producer, as in an alarm of memory or disk (Precondition Failed)")

// clientErrors maps the client's error values.
var clientErrors = failure.Table{
	stream.AuthenticationFailure: driver.ErrAuth, stream.AuthenticationFailureLoopbackError: driver.ErrAuth,
	stream.VirtualHostAccessFailure: driver.ErrAuth, stream.CodeAccessRefused: driver.ErrAuth,
	stream.StreamDoesNotExist: driver.ErrUnsupported, stream.UnknownFrame: driver.ErrUnsupported,
	stream.PreconditionFailed: driver.ErrUnsupported, errMechanism: driver.ErrUnsupported, errAlarm: driver.ErrBlocked,
	stream.FrameTooLarge: driver.ErrTooLarge, stream.ConfirmationTimoutError: driver.ErrTimeout,
	stream.AlreadyClosed: driver.ErrDisconnected, stream.StreamNotAvailable: driver.ErrDisconnected,
	stream.LeaderNotReady: driver.ErrDisconnected, stream.PublisherDoesNotExist: driver.ErrDisconnected,
}

// errorMap maps the client's errors to the contract's.
var errorMap = failure.Map{Is: clientErrors.Is}

// environment creates the client's environment for one producer or consumer, with use, and tries
// one node after the other. The client's calls ignore contexts: a call interrupted by ctx continues
// until the client gives up, and its result is closed.
func (c *conn) environment(ctx context.Context, index int, use func(*stream.Environment) error) (*stream.Environment, error) {
	var errs []error
	for _, n := range c.order(index) {
		// The client retries forever once it has met a server, so check first.
		err := c.greet(ctx, n)
		if err == nil {
			var env *stream.Environment
			if env, err = c.enter(ctx, n, use); err == nil {
				return env, nil
			}
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func (c *conn) enter(ctx context.Context, at endpoint.Endpoint, use func(*stream.Environment) error) (*stream.Environment, error) {
	options, err := c.options(at)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*c.cfg.Timeout)
	defer cancel()
	var env *stream.Environment
	in := gate.Within(ctx, func() {
		if env, err = stream.NewEnvironment(options); err == nil {
			if err = use(env); err != nil {
				_ = env.Close()
			}
		}
	}, func() {
		if err == nil {
			_ = env.Close()
		}
	})
	switch {
	case !in:
		return nil, fmt.Errorf("%s: %w: %w", at.HostPort(), driver.ErrUnreachable, ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("%s: %w", at.HostPort(), errorMap.Cause(err))
	}
	return env, nil
}

// options returns the client's options for one node.
func (c *conn) options(at endpoint.Endpoint) (*stream.EnvironmentOptions, error) {
	// The client puts these into a URL unescaped, and unescapes the vhost twice.
	user, password, _ := strings.Cut(url.UserPassword(c.cfg.User, rabbitserver.Password(c.cfg.User, c.cfg.Password)).String(), ":")
	o := stream.NewEnvironmentOptions().SetRPCTimeout(c.cfg.Timeout).SetRequestedHeartbeat(c.cfg.Heartbeat).
		SetRequestedMaxFrameSize(defaultFrame).SetWriteBuffer(int(c.cfg.SocketBuffer)).SetReadBuffer(int(c.cfg.SocketBuffer))
	o.ConnectionParameters = []*stream.Broker{{
		Scheme: at.Scheme, Host: at.Host, Port: at.Port, User: user, Password: password,
		Vhost: url.PathEscape(url.QueryEscape(c.cfg.Vhost)),
	}}
	t, err := c.cfg.tls(at)
	if err != nil {
		return nil, err
	}
	if t != nil {
		o.SetTLSConfig(t).IsTLS(true)
	}
	return o, nil
}

// end calls do, which closes a client connection, and waits up to endLimit: the client waits for
// the server.
func end(do func()) {
	_ = gate.End(context.Background(), endLimit, do)
}

// compression returns the client's name for an option value.
func compression(word string) stream.Compression {
	switch word {
	case "gzip":
		return stream.Compression{}.Gzip()
	case "snappy":
		return stream.Compression{}.Snappy()
	case "lz4":
		return stream.Compression{}.Lz4()
	case "zstd":
		return stream.Compression{}.Zstd()
	}
	return stream.Compression{}
}
