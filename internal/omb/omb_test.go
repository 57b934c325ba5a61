package omb_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/omb"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// parse parses a test's file; "" means none.
func parse(t *testing.T, name, text string) *tree.Node {
	t.Helper()
	if text == "" {
		return nil
	}
	n, faults := tree.Parse(name, []byte(text))
	must.Do(t, faults.Done())
	return n
}

// convert returns the scenario on one line, and the notes.
func convert(t *testing.T, workload, driver string) (made omb.Converted, notes []string) {
	t.Helper()
	made = must.Get(omb.Convert(parse(t, "w.yaml", workload), parse(t, "d.yaml", driver), func(p string) (string, bool) { return "../" + p, p == "there" }))(t)
	for _, n := range made.Notes {
		notes = append(notes, n.Error())
	}
	return made, notes
}

func TestAWorkloadBecomesAScenario(t *testing.T) {
	t.Parallel()
	const counts = "topics: 2\npartitionsPerTopic: 3\nmessageSize: 100\nsubscriptionsPerTopic: 2\nconsumerPerSubscription: 4\nproducersPerTopic: 5\n"
	const made = "{weir: 1, topology: {destinations: 2, partitions: 3, producers: 10, subscriptions: 2, consumers: 8}, "
	for name, tt := range map[string]struct {
		workload, want string
		notes          []string // their positions and a part of each, in order
	}{
		"a rate, random bytes and a name": {
			"name: my/test\n" + counts + "useRandomizedPayloads: true\nrandomBytesRatio: 0.25\nrandomizedPayloadPoolSize: 9\nproducerRate: 5000\ntestDurationMinutes: 3\nkeyDistributor: KEY_ROUND_ROBIN\n",
			"{weir: 1, name: my-test, " + strings.TrimPrefix(made, "{weir: 1, ") + "load: {rate: 5000/s}, message: {size: 100B, payload: {compressible: 0.75}, keys: {round_robin: 10000}}, warmup: 1m, measure: 3m}",
			[]string{"w.yaml:1:7: name: becomes my-test", "w.yaml:5:24: subscriptionsPerTopic: differs: the benchmark has 4 subscriptions, each of one topic and with 4 consumers; a subscription of weir takes all topics, so there are 2, each with 8 consumers", "w.yaml:10:28: randomizedPayloadPoolSize: is not carried over"},
		},
		"the highest rate, and a file that is there": {
			counts + "payloadFile: there\nproducerRate: 10000000\ntestDurationMinutes: 3\nwarmupDurationMinutes: 0\n",
			made + "load: {rate: max}, message: {size: 100B, payload: {file: ../there}}, warmup: 0m, measure: 3m}",
			[]string{"w.yaml:4:24: subscriptionsPerTopic: differs", "w.yaml:7:14: payloadFile: becomes ../there", "w.yaml:8:15: producerRate: becomes rate: max"},
		},
		"a rate to be found, a file that is not there, and unknown keys": {
			counts + "payloadFile: nowhere\nproducerRate: 0\ntestDurationMinutes: 0\nkeyDistributor: OTHER\nmystery: 1\n",
			made + "load: {rate: 10000/s}, message: {size: 100B}, warmup: 1m}",
			[]string{
				"w.yaml:4:24: subscriptionsPerTopic: differs", "w.yaml:7:14: payloadFile: is not carried over: there is no file nowhere", "w.yaml:8:15: producerRate: is carried over as 10000/s", "w.yaml:9:22: testDurationMinutes: is not carried over",
				"w.yaml:10:17: keyDistributor: is taken as NO_KEY", "w.yaml:11:1: mystery: is not carried over: it is not a key",
			},
		},
		"a backlog, and producers alone": {
			"topics: 1\nmessageSize: 8\nconsumerPerSubscription: 1\nproducersPerTopic: 1\nproducerRate: 10\nconsumerBacklogSizeGB: 1\nbacklogDrainRatio: 0.9\ntestDurationMinutes: 5\nkeyDistributor: RANDOM_NANO\n",
			"{weir: 1, topology: {destinations: 1, producers: 1, subscriptions: 1, consumers: 1}, load: {rate: 10/s}, message: {size: 32B, keys: {uniform: 10000}}, mode: backlog, warmup: 1m, messages: 33554432, drain: 2h}",
			[]string{
				"w.yaml:2:14: messageSize: becomes 32B", "w.yaml:6:24: consumerBacklogSizeGB: becomes a backlog of 33554432", "w.yaml:7:20: backlogDrainRatio: is not carried over",
				"w.yaml:8:22: testDurationMinutes: is not carried over", "w.yaml:9:17: keyDistributor: becomes keys drawn uniformly",
			},
		},
		"more than weir has": {
			"topics: 200000\nmessageSize: 64\nconsumerPerSubscription: 0\nproducersPerTopic: 2\nproducerRate: 10\nuseRandomizedPayloads: true\nrandomBytesRatio: 1\ntestDurationMinutes: 1\n",
			"{weir: 1, topology: {destinations: 200000, producers: 400000}, load: {rate: 10/s}, message: {size: 64B, payload: random}, mode: produce, warmup: 1m, measure: 1m}",
			[]string{
				"w.yaml:1:9: topics: is carried over as 200000, which weir run refuses", "w.yaml:4:20: producersPerTopic: is carried over as 400000, which weir run refuses",
				"w.yaml:4:20: producersPerTopic: differs: in weir each of the 400000",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, notes := convert(t, tt.workload, "")
			if diff := cmp.Diff(tt.want, got.Scenario.Flow()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (got.Search != nil) != strings.Contains(tt.workload, "producerRate: 0\n") {
				t.Errorf("it asks for the highest rate: %v", got.Search)
			}
			compare(t, tt.notes, notes)
		})
	}
}

// compare checks the start of each note.
func compare(t *testing.T, want, got []string) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("notes\n%s\nwant %d", strings.Join(got, "\n"), len(want))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("note %q; want %q...", got[i], want[i])
		}
	}
}

func TestADriverBecomesASystem(t *testing.T) {
	t.Parallel()
	const class = "name: X\ndriverClass: io.openmessaging.benchmark.driver."
	for name, tt := range map[string]struct {
		driver, want string
		notes        []string
	}{
		"kafka, and a comment between its properties": {
			class + "kafka.KafkaBenchmarkDriver\nreplicationFactor: 3\ntopicConfig: |\n  min.insync.replicas=2\ncommonConfig: |\n  # where\n  bootstrap.servers=a:1,b:2\n  linger.ms=5\n" +
				"producerConfig: |\n  acks=-1\n  batch.size=100\n  mystery=hidden\nconsumerConfig: |\n  enable.auto.commit=false\n  auto.offset.reset=latest\n",
			"{weir: 1, system: {driver: kafka, options: {min-insync: 2, address: a:1,b:2, linger: 5ms, acks: all}, guarantee: replicated}, topology: {replication: 3}, consume: {settle: batch}}",
			[]string{
				"d.yaml:12:1: producerConfig.batch.size: is not carried over: --option batch-max-bytes takes 512B or more", "d.yaml:13:1: producerConfig.mystery: is not carried over: driver kafka has no such option",
				"d.yaml:16:1: consumerConfig.auto.offset.reset: is not carried over",
			},
		},
		"redpanda, by the protocol of kafka": {
			class + "redpanda.RedpandaBenchmarkDriver\nreplicationFactor: 3\nreset: true\ntopicConfig: |\ncommonConfig: |\n  bootstrap.servers=h:9092\n  request.timeout.ms=120000\n" +
				"producerConfig: |\n  acks=all\n  linger.ms=1\n  batch.size=131072\nconsumerConfig: |\n  group.id=benchGroup\n  auto.offset.reset=earliest\n  enable.auto.commit=false\n",
			"{weir: 1, system: {driver: kafka, options: {address: h:9092, acks: all, linger: 1ms, batch-max-bytes: 131072B}, guarantee: received}, topology: {replication: 3}, consume: {settle: batch}}",
			[]string{"d.yaml:8:1: commonConfig.request.timeout.ms: is not carried over", "d.yaml:14:1: consumerConfig.group.id: is not carried over: each subscription"},
		},
		"kafka that syncs each message": {
			class + "kafka.KafkaBenchmarkDriver\ntopicConfig: |\n  flush.messages=1\n  flush.ms=0\nproducerConfig: |\n  acks=all\n",
			"{weir: 1, system: {driver: kafka, options: {flush-messages: 1, acks: all}, guarantee: persisted}}",
			nil,
		},
		"rabbitmq, with a password": {
			class + "rabbitmq.RabbitMqBenchmarkDriver\namqpUris:\n- amqp://admin:hunter2@h1:5673/v\n- amqps://h2\n- http://h3\nqueueType: QUORUM\nproducerCreationDelay: 100\n",
			"{weir: 1, system: {driver: rabbitmq, options: {user: admin, vhost: v, address: h1:5673,amqps://h2:5671, queue: quorum, delivery-mode: transient}}, consume: {settle: auto}}",
			[]string{"d.yaml:4:3: amqpUris: is carried over without its password", "d.yaml:6:3: amqpUris: is not carried over: it is not a URI", "d.yaml:7:12: queueType: differs", "d.yaml:8:24: producerCreationDelay: is not carried over"},
		},
		"redis, with a password": {
			class + "redis.RedisBenchmarkDriver\nredisHost: h\nredisPort: 7\nredisPass: hunter2\njedisPoolMaxIdle:\n",
			"{weir: 1, system: {driver: redis-streams, options: {address: h:7}}}",
			[]string{"d.yaml:5:12: redisPass: is not carried over: a scenario holds no secrets (--option password='${env:NAME}')"},
		},
		"pulsar, with what the benchmark takes by itself": {
			class + "pulsar.PulsarBenchmarkDriver\nclient:\n  serviceUrl: pulsar+ssl://h:6651\n  httpUrl: ws://h\n  topicType: non-persistent\nproducer:\n  batchingEnabled: false\n  pendingQueueSize: 0\n",
			"{weir: 1, system: {driver: pulsar, options: {address: pulsar+ssl://h:6651, batching: no, subscription-type: failover, batch-size: 1048576B}}}",
			[]string{"d.yaml:5:12: client.httpUrl: is not carried over: weir does not know ws://", "d.yaml:6:14: client.topicType: is not carried over", "d.yaml:9:21: producer.pendingQueueSize: is not carried over"},
		},
		"artemis, in another protocol": {
			class + "artemis.ArtemisBenchmarkDriver\nbrokerAddress: tcp://h:61616\n",
			"{weir: 1, system: {driver: artemis, options: {address: h:61616}}}",
			[]string{"d.yaml:3:16: brokerAddress: differs: weir speaks AMQP 1.0"},
		},
		"a system that weir lacks": {
			class + "pravega.PravegaBenchmarkDriver\nclient:\n  scopeName: x\n",
			"{weir: 1}",
			[]string{"d.yaml:2:14: driverClass: is not carried over: weir has no driver for PravegaBenchmarkDriver", "d.yaml:4:14: client.scopeName: is not carried over"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, notes := convert(t, "", tt.driver)
			if diff := cmp.Diff(tt.want, got.Scenario.Flow()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			compare(t, tt.notes, notes)
			if all := got.Scenario.Flow() + strings.Join(notes, ""); strings.Contains(all, "hunter2") || strings.Contains(all, "hidden") {
				t.Errorf("a value that may be a password is shown: %s", all)
			}
		})
	}
}

func TestValuesThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	const rest = "topics: 1\nmessageSize: 64\n"
	for text, want := range map[string]string{
		"topics: many\nmessageSize: 64\n":                                            "w.yaml:1:9: topics: is not a whole number (0 or more)",
		"topics: 0\nmessageSize: 64\n":                                               "w.yaml:1:9: topics: is 0 (1 or more)",
		"topics: -4\nmessageSize: 64\n":                                              "w.yaml:1:9: topics: is not a whole number (0 or more)",
		rest + "producersPerTopic: 0\n":                                              "w.yaml:3:20: producersPerTopic: is 0 (1 or more)",
		rest + "useRandomizedPayloads: true\nrandomBytesRatio: NaN\n":                "w.yaml:4:19: randomBytesRatio: is not a share (0 to 1)",
		"topics: 2147483647\nmessageSize: 64\nconsumerPerSubscription: 2147483647\n": "w.yaml:1:9: topics: times producers or consumers is too much (fewer)",
	} {
		_, err := omb.Convert(parse(t, "w.yaml", text), nil, nil)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}

func TestFilesAreKnownByTheirKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{
		"topics: 1\nmessageSize: 64\n":          {true, false},
		"driverClass: x\ntopicConfig: y\n":      {false, true},
		"weir: 1\ntopics: 1\nmessageSize: 64\n": {false, false},
		"topics: 1\n":                           {false, false},
	} {
		n := parse(t, "f", text)
		if got := [2]bool{omb.IsWorkload(n), omb.IsDriver(n)}; got != want {
			t.Errorf("%q is a workload, a driver: %v; want %v", text, got, want)
		}
	}
}

// TestYAMLRoundTrip: the scenario reader reads YAML's output as the same scenario.
func TestYAMLRoundTrip(t *testing.T) {
	t.Parallel()
	made, _ := convert(t, "topics: 1\nmessageSize: 64\nname: 'true'\npayloadFile: there\n", "driverClass: a.PulsarBenchmarkDriver\nclient:\n  serviceUrl: 'pulsar://h: x # y'\n  tlsTrustCertsFilePath: '- \"quoted\"'\nproducer:\n  batchingEnabled: true\n")
	b := must.Get(omb.YAML(made.Scenario))(t)
	if diff := cmp.Diff(made.Scenario.Flow(), parse(t, "made.yaml", string(b)).Flow()); diff != "" {
		t.Errorf("(-made +read):\n%s\n%s", diff, b)
	}
}
