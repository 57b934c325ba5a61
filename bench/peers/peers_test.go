package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/view/layout"
)

// TestParseToolOutput uses output printed by the real tools, for pulsar-perf without its settings.
func TestParseToolOutput(t *testing.T) {
	for _, c := range []struct {
		file  string
		parse func(string) (float64, error)
		want  float64
	}{
		{"nats-pub.txt", parseNATS, 2286419},
		{"nats-sub.txt", parseNATS, 551818},
		{"nats-js.txt", parseNATS, 42749},
		{"nats-consume.txt", parseNATS, 106957},
		{"kafka-produce.txt", parseProducerPerformance, 8909.797213},
		{"kafka-consume.txt", parseConsumerPerformance, (132660 + 150449.1018 + 174163.3466 + 139593.2540) / 4},
		{"pulsar-produce.txt", parsePulsarProduce, 160296.2},
		{"pulsar-consume.txt", parsePulsarConsume, 108918.930},
		{"perftest.txt", parsePerfTest, (2323 + 2387 + 5029 + 4450) / 4.0},
		{"redis-benchmark.txt", parseRedisBenchmark, 55959.71},
		{"artemis-perf.txt", parseArtemisPerf, (439 + 520 + 1515 + 4605 + 1234 + 3869 + 5783 + 6932) / 8.0},
		{"rocketmq-producer.txt", parseRocketBenchmark, 5784},
		{"mosquitto-pub.txt", parseMosquittoPub, 60_000 / 3.964},
	} {
		b := must.Get(os.ReadFile(filepath.Join("testdata", c.file)))(t)
		if got, err := c.parse(string(b)); err != nil || math.Abs(got-c.want) > 0.01 {
			t.Errorf("%s: %v, %v; want %v", c.file, got, err, c.want)
		}
		if _, err := c.parse("connection refused\n"); !errors.Is(err, errNoFigure) {
			t.Errorf("%s: output without a rate gave %v", c.file, err)
		}
	}
}

// TestZeroRateIsRejected also covers failed messages. The texts are a tool's output with other
// numbers.
func TestZeroRateIsRejected(t *testing.T) {
	for _, c := range []struct {
		parse func(string) (float64, error)
		out   string
	}{
		{parseNATS, "publisher stats: 0 msgs/sec"},
		{parseRocketBenchmark, "[Complete] Send Total: 64 | Send TPS: 4711 | Max RT(ms): 1 | Average RT(ms):   0.100 | Send Failed: 1 | Response Failed: 0"},
		{parseRocketBenchmark, "[Complete] Send Total: 64 | Send TPS: 4711 | Max RT(ms): 1 | Average RT(ms):   0.100 | Send Failed: 0 | Response Failed: 2"},
		{parseMosquittoPub, "seconds:0.000"},
		{parsePulsarProduce, "Throughput produced: 9 msg --- 0.9 msg/s --- 1.0 Mbit/s --- failure 0.0 msg/s --- \nThroughput produced: 19 msg --- 1.0 msg/s --- 1.0 Mbit/s --- failure 0.1 msg/s --- "},
		{parsePulsarConsume, "Aggregated throughput stats --- 9 records received --- 4.5 msg/s --- 1.0 Mbit/s --- AckRate: 4.5 msg/s --- ack failed 1 msg"},
	} {
		if v, err := c.parse(c.out); !errors.Is(err, errNoFigure) {
			t.Errorf("%q: %v, %v", c.out, v, err)
		}
	}
}

// TestRatioIsOfPairs: what affects both sides of a pair does not change the ratio.
func TestRatioIsOfPairs(t *testing.T) {
	peer := []float64{100, 50, 200, 10, 100, 400}
	var weir []float64
	for i, p := range peer {
		weir = append(weir, p*[]float64{1.2, 1.1, 1.3, 1.2, 1.25, 1.15}[i])
	}
	r := ratioOf(weir, peer)
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-9 }
	if !near(r.Median, 1.2) || !near(r.Least, 1.1) || !near(r.Most, 1.3) || r.Pairs != 6 {
		t.Errorf("%+v", r)
	}
	// With six pairs the interval is from the minimum to the maximum: 1 - 2/2^6 is 96.9 %.
	if r.Lo == nil || r.Hi == nil || !near(*r.Lo, 1.1) || !near(*r.Hi, 1.3) {
		t.Errorf("the interval is %v..%v", r.Lo, r.Hi)
	}
	if r := ratioOf(weir[:5], peer[:5]); r.Lo != nil || r.Hi != nil {
		t.Errorf("five pairs have an interval: %+v", r)
	}
}

func TestRowsOfOtherFlowsStay(t *testing.T) {
	f := &figures{Schema: schema, Rows: []row{{Name: "a", Tool: "old"}, {Name: "b"}}}
	f.put(row{Name: "a", Tool: "new"})
	f.put(row{Name: "c"})
	if len(f.Rows) != 3 || f.Rows[0].Tool != "new" || f.Rows[1].Name != "b" || f.Rows[2].Name != "c" {
		t.Errorf("%+v", f.Rows)
	}
}

// TestStoredRowsFollowTableOrder: rows of one system are together.
func TestStoredRowsFollowTableOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.json")
	for _, name := range []string{"kafka-produce", "mqtt-publish", "kafka-consume", "nats-publish"} {
		f := figures{Schema: schema, Rows: []row{{Name: name}}}
		must.Do(t, f.store(file))
	}
	f := must.Get(read(file))(t)
	var got []string
	for _, r := range f.Rows {
		got = append(got, r.Name)
	}
	if want := []string{"nats-publish", "kafka-produce", "kafka-consume", "mqtt-publish"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

// TestStoredRowsOfOtherFlowsStay: including those stored while this run measured.
func TestStoredRowsOfOtherFlowsStay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.json")
	for _, f := range []figures{{Rows: []row{{Name: "a", Tool: "old"}, {Name: "b"}}}, {Rows: []row{{Name: "c"}, {Name: "a", Tool: "new"}}}} {
		f.Schema = schema
		must.Do(t, f.store(file))
	}
	f, err := read(file)
	if err != nil || len(f.Rows) != 3 || f.Rows[0].Tool != "new" || f.Rows[1].Name != "b" || f.Rows[2].Name != "c" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestSystemsAndFlowsAreChosenByName(t *testing.T) {
	flows := func(names ...string) (got []string) {
		t.Helper()
		chosen := must.Get(choose(names))(t)
		for _, s := range chosen {
			for _, f := range s.flows {
				got = append(got, f.name)
			}
		}
		return got
	}
	if all := flows(); len(all) < 9 || len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
		t.Errorf("all flows are %q", all)
	}
	want := []string{"nats-receive", "jetstream-publish", "jetstream-consume"}
	if got := flows("jetstream", "nats-receive"); !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

// TestEachStoredRowHasFlow ensures that every row can be measured again.
func TestEachStoredRowHasFlow(t *testing.T) {
	f, err := read("../../docs/results/peers.json")
	if err != nil || len(f.Rows) == 0 {
		t.Fatalf("%d rows: %v", len(f.Rows), err)
	}
	for _, r := range f.Rows {
		if chosen, err := choose([]string{r.Name}); err != nil || len(chosen) != 1 || len(chosen[0].flows) != 1 {
			t.Errorf("%s: %d systems, %v", r.Name, len(chosen), err)
		}
		if r.Ratio.Pairs < 6 || r.Ratio.Lo == nil {
			t.Errorf("%s has %d pairs, too few for an interval", r.Name, r.Ratio.Pairs)
		}
	}
}

// TestEachToolHasARecipe: nothing is installed.
func TestEachToolHasARecipe(t *testing.T) {
	for _, s := range systems {
		if s.tool == "" {
			continue
		}
		if _, err := broker.RecipeOf(tools(), s.tool); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

func TestInvalidArgumentsFailBeforeStart(t *testing.T) {
	for _, args := range [][]string{{"-turns", "0"}, {"no-such-system"}, {"-no-such-flag"}} {
		if err := compare(t.Context(), args); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestThePageOnPeersMatchesStoredTurns keeps the table of docs/results/peers.md in step with the
// stored turns.
func TestThePageOnPeersMatchesStoredTurns(t *testing.T) {
	const dir = "../../docs/results"
	f, err := read(filepath.Join(dir, "peers.json"))
	if err != nil || len(f.Rows) == 0 {
		t.Fatalf("%d rows: %v", len(f.Rows), err)
	}
	for i := range f.Rows {
		f.Rows[i].Ratio = ratioOf(f.Rows[i].Weir, f.Rows[i].Peer)
	}
	page := &layout.Page{}
	page.Heading("weir beside the vendors' own load tools")
	for _, text := range strings.Split(strings.TrimSpace(pageHead), "\n\n") {
		page.Say(text)
	}
	f.page(page)
	golden.File(t, filepath.Join(dir, "peers.md"),
		"<!-- Generated by go test ./bench/peers -run Page -update from peers.json. -->\n\n"+layout.Markdown{}.Page(page))
}

// pageHead introduces the page, and says how far it can be trusted.
const pageHead = `
How fast can weir publish and receive, compared with the load tool of a system's own vendor? Each row is one server
that weir's recipe started. weir and the tool took turns of a few seconds on it, in the order weir, tool, tool, weir.
Each had a process of its own, the same message size, and the same messages in flight. Each had one producer, or what the
row says.

weir/tool is the median of the ratios of pairs of neighbouring turns. Above 1, weir is faster. The interval holds the
true median with 95 % probability, by order statistics. The last column has the least and the most of single pairs.

Limits: one host of two shared cores, over loopback. So only ratios stand here, no rates: what else the host did met
both sides of a pair. weir and the tool also share the two cores with the server. A tool that counts a fixed number of
messages includes its own start of the flow. weir leaves out a second of warm-up.

Rows of a backlog compare only how fast it is drained. weir fills it, then starts its consumer (mode backlog), and counts
from the first delivery to the last. The tool drains as many messages of the same size. Both sides find them in memory:
the page cache holds what was written some seconds before.

weir does more for each message than the tools do. It reads the clock when a message starts and when it completes. It
stamps the message, and enters it in histograms and in the books on loss, duplication and order. The tools count, and
most send the same bytes each time.

The tools of Kafka, RabbitMQ, Artemis, Pulsar and RocketMQ are Java, which compiles itself while it runs. On two shared
cores that can take longer than a turn, and it helps weir in these rows.

Mosquitto has no load tool: its row has
mosquitto_pub, a client that sends each line that it reads. The OpenMessaging Benchmark is not here: its makers release
no artifacts, and it builds from its repository only.

Where nothing is confirmed (NATS, publish), the figure is what one message costs the processor. weir reads the clock
twice for each message and writes the message itself; the tool sends one prepared message, and reads the clock twice a
run. In a profile of weir on that flow the client took 41 % of the sending goroutine's time, the two readings 20 %, the
driver 7 % and all else 32 %. Of the client's part, 23 of the 41 are the socket and the copy into its buffer. A client of
weir's own would need these too, so it would reach 0.72 at most.

Where a server does most of the work, a faster client hardly shows. A message confirmed and acknowledged costs RabbitMQ
71 µs of processor time, and weir 34 µs. Redis adds an entry in 3.4 µs, by one thread. Of weir's own time the client
libraries take most: its engine and driver are 5 % of it with RabbitMQ, and 15 % with Pulsar.

MQTT version 5 goes out by weir's own code, on the packets of the client library, since the library's own call took more
than half of the time. The tool is in C.

Repeat it with go run ./bench/peers -out docs/results/peers.json, then go test ./bench/peers -run Page -update.
`
