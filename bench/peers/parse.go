package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// errNoFigure: a tool's output has no rate where this version of it prints one.
var errNoFigure = errors.New("the tool's output holds no rate")

// What the tools print.
var (
	natsStats     = regexp.MustCompile(`stats: ([0-9][0-9,.]*) msgs/sec`)
	kafkaSummary  = regexp.MustCompile(`(?m)^\d+ (?:steady state )?records sent, ([0-9.]+) records/sec.* 99\.9th\.$`)
	perfTestSent  = regexp.MustCompile(`(?m)time ([0-9.]+) s.*?, sent: ([0-9]+) msg/s.*?, received: ([0-9]+) msg/s`)
	redisOfAll    = regexp.MustCompile(`([0-9.]+) requests per second`)
	artemisLine   = regexp.MustCompile(`--- warmup (true|false)\s+--- sent: +([0-9]+) msg/sec(?s:.*?)--- received: +([0-9]+) msg/sec`)
	kafkaConsumed = regexp.MustCompile(`(?m)^[0-9-]+ [0-9:]+, \d+, .*, ([0-9.]+)$`)
	pulsarSent    = regexp.MustCompile(`Throughput produced: +\d+ msg --- +([0-9.]+) msg/s .*--- failure +([0-9.]+) msg/s`)
	pulsarGot     = regexp.MustCompile(`Aggregated throughput stats --- \d+ records received --- ([0-9.]+) msg/s .*--- ack failed (\d+) msg`)
	rocketSummary = regexp.MustCompile(`\[Complete\] .*Send TPS: ([0-9]+) .*Send Failed: ([0-9]+) \| Response Failed: ([0-9]+)`)
	bashTime      = regexp.MustCompile(`(?m)^seconds:([0-9.]+)$`)
	perfTestStart = 3.0 // s in which both sides of PerfTest still warm up
	kafkaStart    = 5   // lines of ConsumerPerformance, four in a second
	pulsarStart   = 1   // lines of pulsar-perf, one in 10 s
)

// parseNATS reads the messages a second of `nats bench`, of one client or the aggregate of
// several, which comes first.
func parseNATS(out string) (float64, error) {
	m := natsStats.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("nats bench: %w", errNoFigure)
	}
	return rate(strings.ReplaceAll(m[1], ",", ""))
}

// parseProducerPerformance reads the rate of the summary. With warm-up records there are
// two: the last leaves these out.
func parseProducerPerformance(out string) (float64, error) {
	all := kafkaSummary.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("ProducerPerformance: %w", errNoFigure)
	}
	return rate(all[len(all)-1][1])
}

// parseConsumerPerformance reads the mean over its lines, four in a second, of the messages
// received. The first are left out: the Java of the tool still compiles itself.
func parseConsumerPerformance(out string) (float64, error) {
	all := kafkaConsumed.FindAllStringSubmatch(out, -1)
	if len(all) <= kafkaStart {
		return 0, fmt.Errorf("ConsumerPerformance: %w", errNoFigure)
	}
	return mean(all[kafkaStart:], 1)
}

// parsePulsarProduce reads the mean over the lines of pulsar-perf without the first. It
// refuses a run with failures.
func parsePulsarProduce(out string) (float64, error) {
	all := pulsarSent.FindAllStringSubmatch(out, -1)
	if len(all) <= pulsarStart {
		return 0, fmt.Errorf("pulsar-perf produce: %w", errNoFigure)
	}
	for _, m := range all {
		if v, err := strconv.ParseFloat(m[2], 64); err != nil || v != 0 {
			return 0, fmt.Errorf("pulsar-perf produce: %s sends a second failed: %w", m[2], errNoFigure)
		}
	}
	return mean(all[pulsarStart:], 1)
}

// parsePulsarConsume reads the rate of the whole run of pulsar-perf. It refuses one in
// which acknowledgements failed.
func parsePulsarConsume(out string) (float64, error) {
	m := pulsarGot.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("pulsar-perf consume: %w", errNoFigure)
	}
	if m[2] != "0" {
		return 0, fmt.Errorf("pulsar-perf consume: %s acknowledgements failed: %w", m[2], errNoFigure)
	}
	return rate(m[1])
}

// parsePerfTest reads the mean over its lines, one a second, of the messages received.
// The first seconds are left out: the Java of the tool still compiles itself.
func parsePerfTest(out string) (float64, error) {
	var all [][]string
	for _, m := range perfTestSent.FindAllStringSubmatch(out, -1) {
		at, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, err
		}
		if at > perfTestStart {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return 0, fmt.Errorf("PerfTest: %w", errNoFigure)
	}
	return mean(all, 3)
}

// parseRedisBenchmark reads the requests a second of the whole call. With -q the tool
// overwrites its line until the last.
func parseRedisBenchmark(out string) (float64, error) {
	all := redisOfAll.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("redis-benchmark: %w", errNoFigure)
	}
	return rate(all[len(all)-1][1])
}

// parseArtemisPerf reads the mean over the lines, one a second, of the messages received.
// Its warm-up is left out, and so is what comes when it no longer sends.
func parseArtemisPerf(out string) (float64, error) {
	var all [][]string
	for _, m := range artemisLine.FindAllStringSubmatch(out, -1) {
		if m[1] == "false" && m[2] != "0" {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return 0, fmt.Errorf("artemis perf client: %w", errNoFigure)
	}
	return mean(all, 3)
}

// parseRocketBenchmark reads the rate of its summary, which refuses a run with failures.
func parseRocketBenchmark(out string) (float64, error) {
	m := rocketSummary.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("RocketMQ's benchmark Producer: %w", errNoFigure)
	}
	if m[2] != "0" || m[3] != "0" {
		return 0, fmt.Errorf("RocketMQ's benchmark Producer: %s sends and %s responses failed: %w", m[2], m[3], errNoFigure)
	}
	return rate(m[1])
}

// parseMosquittoPub reads how long it took for all of its messages.
func parseMosquittoPub(out string) (float64, error) {
	m := bashTime.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("mosquitto_pub: %w", errNoFigure)
	}
	s, err := rate(m[1])
	return mqttMessages / s, err
}

// mean is that of a column of what an expression found.
func mean(found [][]string, column int) (float64, error) {
	sum := 0.0
	for _, m := range found {
		v, err := rate(m[column])
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum / float64(len(found)), nil
}

// rate reads a number above 0.
func rate(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && !(v > 0) {
		err = fmt.Errorf("%s messages a second: %w", text, errNoFigure)
	}
	return v, err
}
