package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// errNoFigure is returned when a tool's output has no rate where this version prints one.
var errNoFigure = errors.New("the tool's output holds no rate")

// Output of the tools.
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
	perfTestStart = 3.0 // s during which both sides of PerfTest warm up
	kafkaStart    = 5   // lines of ConsumerPerformance, four per second
	pulsarStart   = 1   // lines of pulsar-perf, one per 10 s
)

// parseNATS returns the messages per second of `nats bench`, of one client or the aggregate of
// several, which comes first.
func parseNATS(out string) (float64, error) {
	m := natsStats.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("nats bench: %w", errNoFigure)
	}
	return rate(strings.ReplaceAll(m[1], ",", ""))
}

// parseProducerPerformance returns the rate of the summary. With warm-up records there are two: the
// last excludes them.
func parseProducerPerformance(out string) (float64, error) {
	all := kafkaSummary.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("ProducerPerformance: %w", errNoFigure)
	}
	return rate(all[len(all)-1][1])
}

// parseConsumerPerformance returns the mean of the rates received, printed four times a second. It
// skips the first lines, while the JVM still compiles.
func parseConsumerPerformance(out string) (float64, error) {
	all := kafkaConsumed.FindAllStringSubmatch(out, -1)
	if len(all) <= kafkaStart {
		return 0, fmt.Errorf("ConsumerPerformance: %w", errNoFigure)
	}
	return mean(all[kafkaStart:], 1)
}

// parsePulsarProduce returns the mean of pulsar-perf's lines without the first. It rejects a run with
// failures.
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

// parsePulsarConsume returns the rate of pulsar-perf's whole run. It rejects a run with failed
// acknowledgements.
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

// parsePerfTest returns the mean of the rates received, printed once a second. It skips the first
// seconds, while the JVM still compiles.
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

// parseRedisBenchmark returns the requests per second of the whole call. With -q the tool overwrites
// its line until the last.
func parseRedisBenchmark(out string) (float64, error) {
	all := redisOfAll.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("redis-benchmark: %w", errNoFigure)
	}
	return rate(all[len(all)-1][1])
}

// parseArtemisPerf returns the mean of the rates received, printed once a second. It skips the warm-up
// and the time after sending has ended.
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

// parseRocketBenchmark returns the rate of the summary. It rejects a run with failures.
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

// parseMosquittoPub returns how long all messages took.
func parseMosquittoPub(out string) (float64, error) {
	m := bashTime.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("mosquitto_pub: %w", errNoFigure)
	}
	s, err := rate(m[1])
	return mqttMessages / s, err
}

// mean returns the mean of a column of an expression's matches.
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

// rate parses a number above 0.
func rate(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && !(v > 0) {
		err = fmt.Errorf("%s messages a second: %w", text, errNoFigure)
	}
	return v, err
}
