package rabbitmq

import (
	"context"
	"crypto/tls"
	"regexp"
	"strconv"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/httpapi"
)

// metrics reads the vendor's Prometheus plugin on each node
// (https://www.rabbitmq.com/docs/prometheus). nil: not available.
type metrics struct {
	*httpapi.Client
	urls endpoint.List
}

func newMetrics(c *Config, t *tls.Config) (*metrics, error) {
	urls, err := plugins.All("metrics", c.Metrics)
	if err != nil || len(urls) == 0 {
		return nil, err
	}
	return &metrics{httpapi.New("a Prometheus plugin", t, connectLimit), urls}, nil
}

// drops matches the totals of messages that a node has dropped: at the head of a full queue, by
// age, or by refusals and deliveries, each without a dead-letter exchange, and unroutable messages.
var drops = regexp.MustCompile(`(?m)^(rabbitmq_global_messages_(?:dead_lettered_[a-z_]+_total\{.*dead_letter_strategy="disabled"|unroutable_dropped_total\{).*\}) (\d+)$`)

// discarded returns the totals of all nodes, by metric name.
func (m *metrics) discarded(ctx context.Context) (all []driver.Discarded, err error) {
	if m == nil {
		return nil, nil
	}
	at := map[string]int{}
	for _, u := range m.urls {
		var text string
		if err := m.Do(ctx, "GET", u.String(), "/metrics", nil, nil, &text); err != nil {
			return nil, err
		}
		for _, line := range drops.FindAllStringSubmatch(text, -1) {
			name := metric.FindString(line[1])
			n, err := strconv.ParseUint(line[2], 10, 64)
			if err != nil {
				continue
			}
			if _, known := at[name]; !known {
				at[name] = len(all)
				all = append(all, driver.Discarded{Counter: name})
			}
			all[at[name]].Messages += n
		}
	}
	return all, nil
}

var metric = regexp.MustCompile(`^\w+`)
