package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"

	clienterrors "github.com/apache/rocketmq-client-go/v2/errors"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"github.com/weirmq/weir/driver"
)

// tame keeps the client from printing and from ending the process: without a handler, it panics on
// its own goroutine after reporting that a confirmation takes too long.
var tame = sync.OnceFunc(func() {
	rlog.SetLogger(silence{})
	primitive.PanicHandler = func(any) {}
})

// silence is a client logger that discards everything.
type silence struct{}

func (silence) Debug(string, map[string]any)   {}
func (silence) Info(string, map[string]any)    {}
func (silence) Warning(string, map[string]any) {}
func (silence) Error(string, map[string]any)   {}
func (silence) Fatal(string, map[string]any)   {}
func (silence) Level(string)                   {}
func (silence) OutputPath(string) error        { return nil }

// A peer holds settings for every client producer and consumer.
type peer struct {
	names       primitive.NsResolver
	instance    string // unique: instances with the same name share connections
	credentials primitive.Credentials
}

// peer returns the settings for another producer or consumer. The client accepts name server
// addresses only as IP addresses.
func (c *Config) peer(ctx context.Context) (p peer, err error) {
	at, err := nameServers.All("address", c.Address)
	if err != nil {
		return p, err
	}
	var all []string
	for _, e := range at {
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", e.Host)
		if err != nil {
			return p, words.Unreachable(err)
		}
		all = append(all, net.JoinHostPort(ips[0].Unmap().String(), e.Port))
	}
	return peer{
		names: primitive.NewPassthroughResolver(all), instance: fmt.Sprintf("weir-%016x", rand.Uint64()),
		credentials: primitive.Credentials{AccessKey: c.User, SecretKey: c.Password.Reveal()},
	}, nil
}

// answerCode matches an answer's code in a client error.
var answerCode = regexp.MustCompile(`CODE: (\d+)`)

// clientError maps a client error, usually only a text, to the contract's error.
func clientError(err error) error {
	text := err.Error()
	switch code := answerCode.FindStringSubmatch(text); {
	case code != nil:
		n, _ := strconv.Atoi(code[1]) // digits
		return is(n)
	case errors.Is(err, clienterrors.ErrRequestTimeout), strings.Contains(text, "request timeout"):
		return driver.ErrTimeout
	case errors.Is(err, clienterrors.ErrNotRunning), strings.Contains(text, "service close"):
		return driver.ErrClosed
	case strings.Contains(text, "route info not found"):
		return driver.ErrDisconnected
	}
	return nil
}

// statuses maps a broker's status for an accepted message with less than its settings guarantee.
var statuses = map[primitive.SendStatus]error{
	primitive.SendFlushDiskTimeout:  fmt.Errorf("%w: not synced within the broker's syncFlushTimeout", driver.ErrTimeout),
	primitive.SendFlushSlaveTimeout: fmt.Errorf("%w: not copied within the broker's slaveTimeout", driver.ErrTimeout),
	primitive.SendSlaveNotAvailable: fmt.Errorf("%w: no slave to copy to", driver.ErrTimeout),
}
