package artemis

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// shared is the server of tests that leave it unchanged.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) { shared.Main(m) }

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	conform := func(t *testing.T, nodes int, options map[string][]string) {
		s := shared.Up(t, nodes)
		maps.Copy(s.Options, options)
		expect, hold := 31, block(t, s)
		if options == nil {
			expect++
		} else {
			hold = nil
		}
		h := drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: s.Options, At: s.At, Cut: s.Restart, Stall: s.Stall, Nodes: nodes, Expect: expect, Hold: hold, Allocs: 34,
			Existing: func(run, d string) string { return names.Join(200, "weir", run, d) },
		}
		if nodes == 1 && options == nil {
			h.Kill = s.Kill
			h.Expect++
		}
		drivertest.Run(t, Definition(), h)
	}
	t.Run("durable", func(t *testing.T) { conform(t, 1, nil) })
	t.Run("not durable, sent settled", func(t *testing.T) {
		conform(t, 1, map[string][]string{"durable": {"no"}, "confirm": {"no"}})
	})
	t.Run("a pair", func(t *testing.T) { conform(t, 2, nil) })
}

// block returns a function that blocks a queue: the server grants no credit to a link on a blocked
// address. It revokes no credit, so the function breaks the producer's connection, and waits until
// it is back.
func block(t *testing.T, s *served.System) func(run, destination string) (func(), error) {
	return func(run, destination string) (func(), error) {
		session := plain(t, s)
		queue := names.Join(200, "weir", run, destination)
		// links returns the producer's connection, and how many links it has.
		links := func() (id string, n int) {
			var producers []struct{ ConnectionID, Destination string }
			if err := manage(t, session, "broker", "listProducersInfoAsJSON", &producers); err != nil {
				t.Error(err)
			}
			for _, p := range producers {
				if p.Destination == queue {
					id = p.ConnectionID
				}
			}
			for _, p := range producers {
				if p.ConnectionID == id {
					n++
				}
			}
			return id, n
		}
		before, n := links()
		release := func() { _ = manage(t, session, "address."+queue, "unblock", nil) }
		if err := errors.Join(manage(t, session, "address."+queue, "block", nil), manage(t, session, "broker", "closeConnectionWithID", nil, before)); err != nil {
			return release, err
		}
		if !trial.Eventually(func() bool { now, m := links(); return now != "" && now != before && m == n }) {
			return release, errors.New("the producer does not come back")
		}
		return release, nil
	}
}

// manage performs a management operation. The answer is decoded into a value; nil: ignored.
func manage(t *testing.T, session *client.Session, resource, operation string, into any, params ...any) error {
	t.Helper()
	from, err := session.NewReceiver(t.Context(), "", &client.ReceiverOptions{DynamicAddress: true})
	if err != nil {
		return err
	}
	to, err := session.NewSender(t.Context(), "activemq.management", nil)
	if err != nil {
		return err
	}
	text, err := json.Marshal(append([]any{}, params...))
	if err != nil {
		return err
	}
	address := from.Address()
	if err := to.Send(t.Context(), &client.Message{
		Properties:            &client.MessageProperties{ReplyTo: &address},
		ApplicationProperties: map[string]any{"_AMQ_ResourceName": resource, "_AMQ_OperationName": operation},
		Value:                 string(text),
	}, nil); err != nil {
		return err
	}
	m, err := from.Receive(t.Context(), nil)
	if err != nil {
		return err
	}
	said, _ := m.Value.(string)
	if done, _ := m.ApplicationProperties["_AMQ_OperationSucceeded"].(bool); !done {
		return fmt.Errorf("%s of %s: %s", operation, resource, said)
	}
	if into != nil {
		var answer []string // a single text, which is JSON
		if err := json.Unmarshal([]byte(said), &answer); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(answer[0]), into); err != nil {
			return err
		}
	}
	return errors.Join(to.Close(t.Context()), from.Close(t.Context()))
}
