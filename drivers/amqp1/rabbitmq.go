package amqp1

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/amqp1conn"
)

// A rabbit queries RabbitMQ 4: HTTP over AMQP, at the node /management.
type rabbit struct{ cfg *Config }

// Kinds of queues.
const (
	quorum  = "quorum"
	classic = "classic"
)

// Address implements amqp1conn.Addressed
// (https://www.rabbitmq.com/docs/amqp#address-v2).
func (*rabbit) Address(queue string) string { return "/queues/" + url.PathEscape(queue) }

// tries limits the attempts for a request. The client grants credit for the answer on a separate
// goroutine, which the request may overtake: RabbitMQ then ends the session.
const tries = 10

// ask sends a request about a queue, and returns the answer. A request without a body gets the body
// null: RabbitMQ 4.0 ends the session on a missing body (function_clause in
// rabbit_amqp_management).
func (r *rabbit) ask(ctx context.Context, a *amqp1conn.Admin, method, queue string, body any) (map[string]any, error) {
	path, reply := r.Address(queue), "$me"
	var m *client.Message
	var err error
	for range tries {
		m, err = a.Exchange(ctx, &client.Message{
			Properties: &client.MessageProperties{MessageID: "1", To: &path, Subject: &method, ReplyTo: &reply}, Value: body,
		}, "/management")
		if err == nil || !strings.Contains(err.Error(), "insufficient credit") {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if m.Properties == nil || m.Properties.Subject == nil {
		return nil, fmt.Errorf("%s of %s: the answer has no status: %w", method, path, driver.ErrUnsupported)
	}
	code, err := strconv.ParseInt(*m.Properties.Subject, 10, 64)
	if err != nil || code < 200 || code > 299 {
		return nil, fmt.Errorf("%s of %q: %w", method, path, &refusal{code, fmt.Sprint(m.Value)})
	}
	answer, _ := m.Value.(map[string]any)
	return answer, nil
}

// Declare implements amqp1conn.System. Quorum queues are always durable. With too few nodes,
// RabbitMQ creates a queue with fewer members.
func (r *rabbit) Declare(ctx context.Context, a *amqp1conn.Admin, queue string, replicas int) error {
	arguments := map[string]any{"x-queue-type": r.cfg.QueueType}
	if r.cfg.QueueType == quorum {
		arguments["x-quorum-initial-group-size"] = int64(replicas)
	}
	if _, err := r.ask(ctx, a, "PUT", queue, map[string]any{"durable": r.cfg.Durable || r.cfg.QueueType == quorum, "arguments": arguments}); err != nil {
		return err
	}
	if replicas < 2 {
		return nil
	}
	answer, err := r.ask(ctx, a, "GET", queue, client.Null{})
	if err != nil {
		return err
	}
	if n := members(answer); n < replicas {
		return errors.Join(fmt.Errorf("%d replicas: the %s queue has %d: %w", replicas, r.cfg.QueueType, n, driver.ErrUnsupported), r.Delete(ctx, a, queue))
	}
	return nil
}

// members returns the number of nodes that hold a queue.
func members(queue map[string]any) int {
	switch of := queue["replicas"].(type) {
	case []any:
		return len(of)
	case []string:
		return len(of)
	}
	return 1
}

// Delete implements amqp1conn.System.
func (r *rabbit) Delete(ctx context.Context, a *amqp1conn.Admin, queue string) error {
	_, err := r.ask(ctx, a, "DELETE", queue, client.Null{})
	if is(err, notFound) {
		return nil
	}
	return err
}

// Waiting implements amqp1conn.System: messages ready to be sent to a consumer.
func (r *rabbit) Waiting(ctx context.Context, a *amqp1conn.Admin, queue string) (uint64, error) {
	answer, err := r.ask(ctx, a, "GET", queue, client.Null{})
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(fmt.Sprint(answer["message_count"]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the broker does not tell message_count of %s: %w", queue, driver.ErrUnsupported)
	}
	return n, nil
}

// Facts implements amqp1conn.System. AMQP does not reveal a cluster's nodes, so each address counts
// as one.
func (r *rabbit) Facts(ctx context.Context, a *amqp1conn.Admin, queues []string) (driver.Facts, error) {
	p, err := a.Properties(ctx)
	if err != nil {
		return driver.Facts{}, err
	}
	f := driver.Facts{Name: p["product"], Version: p["version"], Nodes: max(len(r.cfg.Address), 1), Settings: map[string]string{
		"durable": strconv.FormatBool(r.cfg.Durable), "queue-type": r.cfg.QueueType,
	}}
	if f.Name != "RabbitMQ" {
		return f, fmt.Errorf("management: rabbitmq is for RabbitMQ 4, and this is %q: %w", f.Name, driver.ErrUnsupported)
	}
	for _, q := range queues {
		answer, err := r.ask(ctx, a, "GET", q, client.Null{})
		if is(err, notFound) {
			continue // not declared yet
		}
		if err != nil {
			return f, err
		}
		durable, _ := answer["durable"].(bool)
		kind := fmt.Sprint(answer["type"])
		n := members(answer)
		f.Confirms = f.Confirms.Weaker(r.confirms(kind, n, durable && r.cfg.Durable))
		f.Settings["queue-type"], f.Settings["members"] = kind, strconv.Itoa(n)
	}
	if f.Confirms == (driver.Confirms{}) {
		f.Confirms = r.confirms(r.cfg.QueueType, 1, r.cfg.Durable)
	}
	return f, nil
}

// confirms returns what RabbitMQ's acceptance of a message means for a kind of queue. A quorum
// queue has synced the message on most of its members. A classic queue syncs nothing.
func (r *rabbit) confirms(kind string, members int, durable bool) driver.Confirms {
	k := r.cfg.Known(driver.Servers{})
	k["queue-type"], k["replication"], k["durable"] = kind, strconv.Itoa(members), strconv.FormatBool(durable)
	return page.Confirmations.Of(k)
}
