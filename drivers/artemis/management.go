package artemis

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/amqp1conn"
)

// A system queries the server through its management address.
type system struct{ cfg *Config }

// A refusal is an error answer from the management address.
type refusal struct{ text string }

// Error returns the server's message.
func (r *refusal) Error() string { return r.text }

// Unwrap returns driver.ErrUnsupported: the server answered, but does not support the request.
func (r *refusal) Unwrap() error { return driver.ErrUnsupported }

// missing reports whether an answer means that the queue or address does not exist.
func missing(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "does not exist") || strings.Contains(text, "cannot find resource")
}

// ask reads an attribute of a resource, or performs an operation. what is the property that names
// it. The answer is decoded into into; nil: ignored.
func (s *system) ask(ctx context.Context, a *amqp1conn.Admin, resource, what, name string, into any, params ...any) error {
	if params == nil {
		params = []any{}
	}
	b, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("writing the parameters of %s: %w", name, err)
	}
	answer, err := a.Ask(ctx, question(resource, what, name, string(b)), s.cfg.Management)
	if err != nil {
		return err
	}
	text, _ := answer.Value.(string)
	if done, _ := answer.ApplicationProperties["_AMQ_OperationSucceeded"].(bool); !done {
		var said []string
		if json.Unmarshal([]byte(text), &said) == nil {
			text = strings.Join(said, ", ")
		}
		return fmt.Errorf("%s of %s: %w", name, resource, &refusal{text})
	}
	if into == nil {
		return nil
	}
	said := []any{into}
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		return fmt.Errorf("%s of %s: what answers is not Artemis: %w: %s", name, resource, driver.ErrUnsupported, err.Error())
	}
	return nil
}

// question returns a message to the management address.
func question(resource, what, name, params string) *client.Message {
	return &client.Message{ApplicationProperties: map[string]any{"_AMQ_ResourceName": resource, what: name}, Value: params}
}

// Question implements amqp1conn.Deferring: one thread of the session takes the messages.
func (s *system) Question() (*client.Message, string) {
	return question(broker, attribute, "version", "[]"), s.cfg.Management
}

// Names of properties.
const (
	attribute = "_AMQ_Attribute"
	operation = "_AMQ_OperationName"
	broker    = "broker" // a resource
)

// Declare implements amqp1conn.System. A durable queue of a pair has two replicas, once the backup
// has synchronized.
func (s *system) Declare(ctx context.Context, a *amqp1conn.Admin, queue string, replicas int) error {
	if replicas > 1 {
		p, err := s.pair(ctx, a)
		switch {
		case err != nil:
			return err
		case p.copies() < replicas:
			return fmt.Errorf("%d replicas: the server has %s: %w", replicas, p, driver.ErrUnsupported)
		case !s.cfg.Durable:
			return fmt.Errorf("%d replicas: a backup has durable messages only (durable: yes): %w", replicas, driver.ErrUnsupported)
		}
	}
	b, err := json.Marshal(map[string]any{
		"name": queue, "address": queue, "routing-type": "ANYCAST", "durable": s.cfg.Durable,
		"auto-create-address": true, "auto-delete": false,
	})
	if err != nil {
		return fmt.Errorf("writing the queue's settings: %w", err)
	}
	return s.ask(ctx, a, broker, operation, "createQueue", nil, string(b), true)
}

func (s *system) Delete(ctx context.Context, a *amqp1conn.Admin, queue string) error {
	err := s.ask(ctx, a, broker, operation, "destroyQueue", nil, queue, true, true)
	if err == nil || missing(err) {
		err = s.ask(ctx, a, broker, operation, "deleteAddress", nil, queue, true)
	}
	if missing(err) {
		return nil
	}
	return err
}

// Waiting implements amqp1conn.System. The server also counts messages that consumers hold.
func (s *system) Waiting(ctx context.Context, a *amqp1conn.Admin, queue string) (n uint64, err error) {
	return n, s.ask(ctx, a, "queue."+queue, attribute, "messageCount", &n)
}

func (s *system) Facts(ctx context.Context, a *amqp1conn.Admin, queues []string) (driver.Facts, error) {
	f := driver.Facts{Name: "artemis", Nodes: 1, Settings: map[string]string{}}
	var err error
	var p pair
	if p, err = s.pair(ctx, a); err != nil {
		return f, err
	}
	f.Nodes = p.nodes
	at, err := a.At(ctx)
	if err != nil {
		return f, err
	}
	f.Leaders = []string{at} // a passive backup answers no clients
	var persistent, sync, durable bool
	var journal string
	for name, into := range map[string]any{
		"version": &f.Version, "persistenceEnabled": &persistent, "journalSyncNonTransactional": &sync, "journalType": &journal,
	} {
		if err := s.ask(ctx, a, broker, attribute, name, into); err != nil {
			return f, err
		}
	}
	durable = s.cfg.Durable
	for _, q := range queues {
		var is bool
		err := s.ask(ctx, a, "queue."+q, attribute, "durable", &is)
		if missing(err) {
			continue // not declared yet
		}
		if err != nil {
			return f, err
		}
		durable = durable && is
	}
	if err := s.dropped(ctx, a, queues, &f); err != nil {
		return f, err
	}
	f.Settings["persistence-enabled"] = strconv.FormatBool(persistent)
	f.Settings["durable"] = strconv.FormatBool(durable)
	k := s.cfg.Known(driver.Servers{})
	k["durable"], k["server.persistence"] = f.Settings["durable"], f.Settings["persistence-enabled"]
	k["server.sync"], k["replication"] = strconv.FormatBool(sync), p.replication()
	f.Confirms = page.Confirmations.Of(k)
	if !persistent {
		return f, nil
	}
	f.Settings["journal-type"] = journal
	f.Settings["journal-sync-non-transactional"] = strconv.FormatBool(sync)
	f.Settings["journal-datasync"] = s.cfg.Datasync + " (option datasync)"
	if p.configured {
		f.Settings["ha-policy"] = p.policy
		f.Settings["replica in sync"] = strconv.FormatBool(p.synced)
	}
	return f, nil
}
