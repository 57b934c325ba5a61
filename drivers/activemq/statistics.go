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

// Waiting implements amqp1conn.System. The server also counts messages that consumers hold. It does
// not answer for a missing queue, so a second request, about the server itself, which is answered
// afterwards, reveals that.
func (s *system) Waiting(ctx context.Context, a *amqp1conn.Admin, queue string) (n uint64, err error) {
	if strings.ContainsAny(queue, wildcards) {
		return 0, fmt.Errorf("%q names several queues: %w", queue, driver.ErrUnsupported)
	}
	err = errMissing
	asked := a.AskEach(ctx, question(), []string{ofQueue + queue, ofBroker}, func(m *client.Message) bool {
		answer, _ := m.Value.(map[string]any)
		if _, ours := answer["destinationName"]; !ours {
			return true
		}
		n, err = strconv.ParseUint(fmt.Sprint(answer["size"]), 10, 64)
		return false
	})
	if asked != nil {
		return 0, asked
	}
	return n, err
}

func (s *system) Facts(ctx context.Context, a *amqp1conn.Admin, _ []string) (driver.Facts, error) {
	f := driver.Facts{Name: "activemq", Nodes: 1, Confirms: guarantees.Of(s.cfg.Known(driver.Servers{}))}
	p, err := a.Properties(ctx)
	if err != nil {
		return f, err
	}
	if _, err := a.Ask(ctx, question(), ofBroker); err != nil {
		return f, fmt.Errorf("no statistics: the server stands still, or has no statisticsBrokerPlugin: %w", err)
	}
	f.Version = p["version"]
	f.Settings = map[string]string{"store": s.cfg.Store + " (option store)", "durable": strconv.FormatBool(s.cfg.Durable)}
	return f, nil
}
