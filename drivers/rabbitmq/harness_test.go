package rabbitmq

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/rabbitserver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// options returns a server's options plus more: alternating names and values.
func options(s *served.System, more ...string) map[string][]string {
	o := map[string][]string{}
	for k, v := range s.Options {
		o[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		if o[more[i]] = []string{more[i+1]}; more[i+1] == "" {
			delete(o, more[i])
		}
	}
	return o
}

func open(t testing.TB, run driver.Run, options map[string][]string) *conn {
	t.Helper()
	return driver.Inside(trial.Opened(t, Definition(), run, options)).(*conn)
}

// declared declares the destination d.
func declared(t testing.TB, c *conn, replicas int) {
	t.Helper()
	trial.Declare(t, c, driver.Destination{Name: "d", Partitions: 1, Replicas: replicas})
}

func producerOf(t testing.TB, c *conn, done driver.Completer, destination string) *producer {
	t.Helper()
	return trial.Produce(t, c, done, destination).(*producer)
}

// by calls do with a channel, as an administrator would.
func by(t testing.TB, c *conn, do func(*client.Channel) error) {
	t.Helper()
	must.Do(t, c.ask(t.Context(), do))
}

// put creates an object through the management plugin.
func put(t testing.TB, s *served.System, path string, body map[string]any) {
	t.Helper()
	b := must.Get(json.Marshal(body))(t)
	q := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPut, s.Options["management"][0]+"/api/"+path, bytes.NewReader(b)))(t)
	q.SetBasicAuth(rabbitserver.Guest, rabbitserver.Guest)
	q.Close = true
	a := must.Get(http.DefaultClient.Do(q))(t)
	_ = a.Body.Close()
	if !strings.HasPrefix(a.Status, "20") {
		t.Fatalf("%s: %s", path, a.Status)
	}
}
