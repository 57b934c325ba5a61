package series

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/result"
)

func TestCostPerMessage(t *testing.T) {
	server := func(name string, cores *float64, written *uint64) host.ServerUsage {
		return host.ServerUsage{Name: name, Cores: cores, WrittenBytes: written}
	}
	servers := func(all ...host.ServerUsage) *result.Servers { return &result.Servers{SpanS: 10, Processes: all} }
	sending := result.Throughput{ConfirmedPerS: 2000, SentBytesPerS: 1e6, ReceivedPerS: new(1.0), ReceivedBytesPerS: new(1.0)}
	unknown := func(pairs ...string) (all []result.Unknown) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, result.Unknown{Figure: pairs[i], Why: pairs[i+1]})
		}
		return all
	}
	for name, c := range map[string]struct {
		mode    string
		t       result.Throughput
		servers *result.Servers
		price   float64
		want    *result.Efficiency
	}{
		"nothing is known": {"stream", sending, nil, 0, nil},
		"two servers": {
			"stream", sending, servers(server("a", new(0.3), new(uint64(15e6))), server("b", new(0.1), new(uint64(5e6)))), 0.36,
			&result.Efficiency{Messages: "confirmed", MessagesPerCPUS: new(5000.0), WrittenPerMessageByte: new(2.0), PricePerHour: new(0.36), CostPerMillion: new(0.05)},
		},
		"a consumer": {
			"consume",
			result.Throughput{ReceivedPerS: new(500.0), ReceivedBytesPerS: new(1e5)},
			servers(server("a", new(0.5), new(uint64(0)))), 0,
			&result.Efficiency{Messages: "received", MessagesPerCPUS: new(1000.0), WrittenPerMessageByte: new(0.0)},
		},
		"a price alone": {
			"stream", sending, nil, 7.2,
			&result.Efficiency{Messages: "confirmed", PricePerHour: new(7.2), CostPerMillion: new(1.0), Unknown: unknown(
				"messages_per_cpu_s", "weir did not start the servers, and was not told which processes they are (watch_pid)",
				"written_per_message_byte", "weir did not start the servers, and was not told which processes they are (watch_pid)")},
		},
		"a server that does not tell": {
			"stream", sending, servers(server("a", nil, new(uint64(1))), server("b", new(1.0), nil)), 0,
			&result.Efficiency{Messages: "confirmed", Unknown: unknown(
				"messages_per_cpu_s", "the processor time of a is not known",
				"written_per_message_byte", "what b wrote is not known: the kernel shows it only to the user of the process and to root")},
		},
		"no message": {
			"stream",
			result.Throughput{},
			servers(server("a", new(0.1), new(uint64(1)))), 1,
			&result.Efficiency{Messages: "confirmed", Unknown: unknown(
				"messages_per_cpu_s", "no message was confirmed in the measured window",
				"written_per_message_byte", "no message was confirmed in the measured window",
				"cost_per_million", "no message was confirmed in the measured window")},
		},
		"an idle server": {
			"stream", sending, servers(server("a", new(0.0), new(uint64(1e7)))), 0,
			&result.Efficiency{Messages: "confirmed", WrittenPerMessageByte: new(1.0), Unknown: unknown(
				"messages_per_cpu_s", "the servers used less processor time than the kernel counts, which is in ticks of 10 ms")},
		},
	} {
		r := &result.Result{Run: result.Run{Mode: c.mode}, Throughput: c.t, Servers: c.servers}
		equal := cmp.Comparer(func(a, b float64) bool { return a == b || a/b > 1-1e-12 && a/b < 1+1e-12 })
		if d := cmp.Diff(c.want, efficiency(r, c.price), equal); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, strings.TrimSpace(d))
		}
	}
}
