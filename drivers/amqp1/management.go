package amqp1

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/amqp1conn"
)

// A system queries the broker's management node.
type system struct{ cfg *Config }

// Names used by Qpid.
const (
	node        = "$management"
	queueType   = "org.apache.qpid.Queue"
	virtualHost = "org.apache.qpid.VirtualHost"
	depth       = "queueDepthMessages"
)

// Status codes of a management node, as in HTTP.
const (
	notFound = 404
	conflict = 409
)

// A refusal is an error answer.
type refusal struct {
	code int64
	text string
}

// Error returns the broker's message.
func (r *refusal) Error() string { return fmt.Sprintf("%d: %s", r.code, r.text) }

// Unwrap returns driver.ErrUnsupported: the broker answered, but does not support the request.
func (r *refusal) Unwrap() error { return driver.ErrUnsupported }

// is reports whether an error is a refusal with a code.
func is(err error, code int64) bool {
	r := (*refusal)(nil)
	return errors.As(err, &r) && r.code == code
}

// ask performs an operation on the object with a type and a path, and returns the answer.
// properties alternates names and values.
func (s *system) ask(ctx context.Context, a *amqp1conn.Admin, operation, of, path string, body map[string]any, properties ...string) (map[string]any, error) {
	p := map[string]any{"operation": operation, "type": of, "index": "object-path", "key": path}
	for i := 0; i < len(properties); i += 2 {
		p[properties[i]] = properties[i+1]
	}
	if body == nil {
		body = map[string]any{}
	}
	m, err := a.Ask(ctx, &client.Message{ApplicationProperties: p, Value: body}, node)
	if err != nil {
		return nil, err
	}
	code, err := strconv.ParseInt(fmt.Sprint(m.ApplicationProperties["statusCode"]), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: the answer has no statusCode: %w", operation, path, driver.ErrUnsupported)
	}
	if code < 200 || code > 299 {
		return nil, fmt.Errorf("%s of %q: %w", operation, path, &refusal{code, fmt.Sprint(m.ApplicationProperties["statusDescription"])})
	}
	answer, _ := m.Value.(map[string]any)
	return answer, nil
}

func (s *system) Declare(ctx context.Context, a *amqp1conn.Admin, queue string, _ int) error {
	if s.cfg.Management == none {
		return a.Attach(ctx, queue)
	}
	_, err := s.ask(ctx, a, "CREATE", queueType, queue, map[string]any{"name": queue, "durable": s.cfg.Durable})
	if is(err, conflict) {
		return nil
	}
	return err
}

// Delete implements amqp1conn.System. Without management, only the messages are removed.
func (s *system) Delete(ctx context.Context, a *amqp1conn.Admin, queue string) error {
	if s.cfg.Management == none {
		return a.Empty(ctx, queue)
	}
	_, err := s.ask(ctx, a, "DELETE", queueType, queue, nil)
	if is(err, notFound) {
		return nil
	}
	return err
}

// Waiting implements amqp1conn.System. The broker also counts messages that consumers hold. Without
// management, only a missing queue can be detected.
func (s *system) Waiting(ctx context.Context, a *amqp1conn.Admin, queue string) (uint64, error) {
	if s.cfg.Management == none {
		return 0, a.Attach(ctx, queue)
	}
	answer, err := s.ask(ctx, a, "getStatistics", queueType, queue, nil, "statistics", `["`+depth+`"]`)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(fmt.Sprint(answer[depth]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the broker does not tell %s of %s: %w", depth, queue, driver.ErrUnsupported)
	}
	return n, nil
}

func (s *system) Facts(ctx context.Context, a *amqp1conn.Admin, queues []string) (driver.Facts, error) {
	p, err := a.Properties(ctx)
	if err != nil {
		return driver.Facts{}, err
	}
	f := driver.Facts{
		Name: "an AMQP 1.0 broker without a name", Version: p["version"], Nodes: 1,
	}
	if p["product"] != "" {
		f.Name = p["product"]
	}
	store, durable := s.cfg.Store, s.cfg.Durable
	f.Settings = map[string]string{"store": store + " (option store)"}
	if s.cfg.Management == qpid {
		host, err := s.ask(ctx, a, "READ", virtualHost, "", nil)
		if err != nil {
			return f, fmt.Errorf("reading the virtual host (a broker without Qpid's management takes the option management: none): %w", err)
		}
		kept := fmt.Sprint(host["qpid-type"])
		if f.Settings["virtual-host"] = kept; kept == "Memory" {
			store = memory
		}
		for _, q := range queues {
			answer, err := s.ask(ctx, a, "READ", queueType, q, nil)
			if is(err, notFound) {
				continue // not declared yet
			}
			if err != nil {
				return f, err
			}
			isDurable, _ := answer["durable"].(bool)
			durable = durable && isDurable
		}
	}
	f.Settings["durable"] = strconv.FormatBool(durable)
	k := s.cfg.Known(driver.Servers{})
	k["durable"], k["store"] = f.Settings["durable"], store
	f.Confirms = page.Confirmations.Of(k)
	return f, nil
}
