package activemq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/amqp1conn"
)

// A system queries the server's plugin.
type system struct{ cfg *Config }

// The addresses of the plugin.
const (
	ofBroker = "ActiveMQ.Statistics.Broker"
	ofQueue  = "ActiveMQ.Statistics.Destination."
)

// wildcards are characters that make a name match several queues.
const wildcards = "*>,"

// errMissing means that the server has no such queue.
var errMissing = fmt.Errorf("the server has no such queue: %w", driver.ErrUnsupported)

// question returns a request to the plugin. A server without the plugin drops it soon.
func question() *client.Message {
	return &client.Message{Header: &client.MessageHeader{TTL: time.Minute}, Value: ""}
}

// Declare implements amqp1conn.System. The server creates a queue for a consumer.
func (s *system) Declare(ctx context.Context, a *amqp1conn.Admin, queue string, _ int) error {
	return a.Attach(ctx, queue)
}

// Delete implements amqp1conn.System. AMQP has no request to delete a queue, so only its messages
// are removed. A server may be configured to drop the empty queue (gcInactiveDestinations).
func (s *system) Delete(ctx context.Context, a *amqp1conn.Admin, queue string) error {
	err := a.Drain(ctx, queue, func(ctx context.Context) (uint64, error) { return s.Waiting(ctx, a, queue) })
	if errors.Is(err, errMissing) {
		return nil
	}
	return err
}

// Waiting implements amqp1conn.System. The server also counts messages that consumers hold.
func (s *system) Waiting(ctx context.Context, a *amqp1conn.Admin, queue string) (uint64, error) {
	return s.count(ctx, a, queue, "size")
}

// count returns a number from the statistics of a queue.
func (s *system) count(ctx context.Context, a *amqp1conn.Admin, queue, name string) (uint64, error) {
	answer, err := s.statistics(ctx, a, queue)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fmt.Sprint(answer[name]), 10, 64)
}

// statistics returns the statistics of a queue. The server does not answer for a missing queue, so
// a second request, about the server itself, which is answered afterwards, reveals that.
func (s *system) statistics(ctx context.Context, a *amqp1conn.Admin, queue string) (of map[string]any, err error) {
	if strings.ContainsAny(queue, wildcards) {
		return nil, fmt.Errorf("%q names several queues: %w", queue, driver.ErrUnsupported)
	}
	err = a.AskEach(ctx, question(), []string{ofQueue + queue, ofBroker}, func(m *client.Message) bool {
		answer, _ := m.Value.(map[string]any)
		_, ours := answer["destinationName"]
		if ours {
			of = answer
		}
		return !ours
	})
	if err == nil && of == nil {
		err = errMissing
	}
	return of, err
}

// limits are the server's limits (systemUsage), by their prefix in its statistics
// (https://activemq.apache.org/components/classic/documentation/producer-flow-control).
var limits = []struct{ prefix, name string }{
	{"memory", "memoryUsage"},
	{"store", "storeUsage"},
	{"temp", "tempUsage"},
}

// Full implements amqp1conn.Limited. Where a limit is reached, the server reads no more from
// connections that publish; it has accepted the message that reached the limit.
func (s *system) Full(ctx context.Context, a *amqp1conn.Admin, _ string) (string, error) {
	m, err := a.Ask(ctx, question(), ofBroker)
	if err != nil {
		return "", err
	}
	answer, _ := m.Value.(map[string]any)
	var full []string
	for _, l := range limits {
		number := func(name string) (n int64) {
			n, _ = strconv.ParseInt(fmt.Sprint(answer[l.prefix+name]), 10, 64) // 0 if the server does not report it
			return n
		}
		if used := number("PercentUsage"); used >= 100 {
			full = append(full, fmt.Sprintf("the limit of %s is reached: %d bytes", l.name, number("Limit")))
		}
	}
	return strings.Join(full, ", "), nil
}

func (s *system) Facts(ctx context.Context, a *amqp1conn.Admin, queues []string) (driver.Facts, error) {
	f := driver.Facts{Name: "activemq", Nodes: 1, Confirms: page.Confirmations.Of(s.cfg.Known(driver.Servers{}))}
	p, err := a.Properties(ctx)
	if err != nil {
		return f, err
	}
	if _, err := a.Ask(ctx, question(), ofBroker); err != nil {
		return f, fmt.Errorf("no statistics: the server stands still, or has no statisticsBrokerPlugin: %w", err)
	}
	if len(queues) <= amqp1conn.MostCounted {
		if f.Discarded, err = s.expired(ctx, a, queues); err != nil {
			return f, err
		}
	}
	f.Version = p["version"]
	f.Settings = map[string]string{"store": s.cfg.Store + " (option store)", "durable": strconv.FormatBool(s.cfg.Durable)}
	return f, nil
}

func (s *system) expired(ctx context.Context, a *amqp1conn.Admin, queues []string) ([]driver.Discarded, error) {
	d := driver.Discarded{Counter: "expiredCount"}
	for _, q := range queues {
		n, err := s.count(ctx, a, q, d.Counter)
		if err != nil && !errors.Is(err, driver.ErrUnsupported) { // missing queue
			return nil, err
		}
		d.Messages += n
	}
	return []driver.Discarded{d}, nil
}
