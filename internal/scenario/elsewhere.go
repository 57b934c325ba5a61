package scenario

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/weirmq/weir/internal/scenario/tree"
)

// listsOptions says where a driver's options are listed.
const listsOptions = " (weir drivers NAME lists a driver's own options)"

// Elsewhere returns weir's equivalent of another tool's flag or key: flags of weir run, or advice if a
// driver option does it. Both are "" if weir does not know the flag.
func Elsewhere(name string) (flags, advice string) {
	switch strings.ReplaceAll(strings.ToLower(name), "_", "-") {
	case "auto-ack", "autoack", "ack-mode":
		return "--settle", ""
	case "consumer-latency", "subsleep", "sub-sleep", "think-time":
		return "--work", ""
	case "no-progress", "silent":
		return "--quiet", ""
	case "duration", "time", "length", "run-time", "runtime", "test-duration", "measurement-time":
		return "--measure", ""
	case "broker":
		return "--driver or --address", ""
	case "host", "hosts", "url", "urls", "uri", "brokers", "broker-list", "bootstrap-server", "bootstrap-servers", "server", "servers", "endpoint", "endpoints", "endpoint-url", "addr":
		return "--address", ""
	case "port":
		return "--address HOST:PORT", ""
	case "qps", "rps", "throughput", "target-throughput", "target-rate", "publish-rate", "requests-per-second", "messages-per-second":
		return "--rate", ""
	case "connections", "conns", "threads", "clients", "workers", "concurrency", "vus", "parallel":
		return "--producers or --consumers", ""
	case "publishers", "publisher", "senders", "sender", "pubs", "pub", "producer", "num-producers":
		return "--producers", ""
	case "subscribers", "subscriber", "receivers", "receiver", "subs", "sub", "consumer", "num-consumers":
		return "--consumers", ""
	case "topics", "queues", "streams", "channels":
		return "--destinations", ""
	case "topic", "queue", "subject", "stream", "channel", "destination":
		return "--topology.names", ""
	case "message-size", "msg-size", "payload-size", "record-size", "body-size", "data-size":
		return "--size", ""
	case "num-messages", "num-records", "number-of-messages", "count", "requests", "msgs", "total":
		return "--messages", ""
	case "group", "consumer-group", "groups":
		return "--subscriptions or --durable", ""
	case "batch-size":
		return "--batch", ""
	case "pipeline", "max-in-flight", "max-pending", "outstanding", "window", "max-outstanding":
		return "--in-flight", ""
	case "iterations":
		return "--messages or --repeat", ""
	case "runs", "trials", "samples":
		return "--repeat", ""
	case "acks", "ack", "required-acks", "consistency", "durability", "write-concern":
		return "", "use --guarantee, or the driver's own option, for kafka --option acks=VALUE" + listsOptions
	case "qos":
		return "", "use --guarantee, or --option qos=VALUE" + listsOptions
	case "tls", "ssl", "cacert", "ca", "ca-file", "cert", "key", "insecure":
		return "", "TLS is an option of the driver, such as --option tls.ca=FILE" + listsOptions
	case "password", "pass", "token", "api-key", "secret":
		return "", "a secret is an option of the driver, such as --option password='${env:NAME}'" + listsOptions
	case "user", "username", "login":
		return "", "use --option user=NAME" + listsOptions
	case "output", "output-dir", "report-dir", "results", "export", "summary-export", "json-summary", "export-json", "export-csv", "csv":
		return "--out", ""
	case "format", "output-format":
		return "--json", ""
	case "threshold", "thresholds", "objective":
		return "--slo", ""
	case "dry-run", "plan", "check":
		return "--explain", ""
	case "docker", "container", "compose":
		return "--start", ""
	case "system", "type", "backend":
		return "--driver", ""
	case "replicas", "replication-factor", "rf":
		return "--replication", ""
	case "cluster", "cluster-size", "servers-count":
		return "--nodes", ""
	case "delay":
		return "--latency", ""
	case "bandwidth", "bw":
		return "--network.bandwidth", ""
	case "device", "target-addr", "target-port", "target-proto", "default-bw":
		return "", "weir makes a network of its own between clients and servers, and all packets on it meet the same conditions"
	case "stage", "stages", "profile", "steps":
		return "", "a load that changes is load.profile of a scenario file"
	case "file", "config", "scenario", "scenario-file", "config-file":
		return "", "the scenario file has no flag (weir run FILE)"
	case "ramp", "ramping":
		return "", "a load that changes is load.profile of a scenario file"
	case "verbose", "debug":
		return "", "the result folder has all that is known of a run (events.jsonl has what happened when)"
	case "persistent", "durable-messages":
		return "", "use --guarantee persisted, and the driver's own options" + listsOptions
	case "rampup", "ramp-up", "ramp-up-time":
		return "", "a load that rises is load.profile of a scenario file (--warmup leaves out the first seconds)"
	case "warm", "warm-up-time":
		return "--warmup", ""
	}
	return "", ""
}

// sectionFor suggests the section that was meant by a mapping at the top of a file; "" if its keys are
// unfamiliar.
func sectionFor(key string) string {
	switch strings.ToLower(key) {
	case "messages", "msg", "msgs":
		return `, did you mean "message"?`
	case "consumer", "consumers", "subscriber", "subscribers":
		return `, did you mean "consume"? (topology.consumers is how many there are)`
	case "producer", "producers", "publisher", "publishers", "produce", "publish":
		return `, did you mean "load"? (topology.producers is how many there are)`
	}
	return ""
}

// swept matches a value that needs no quotes in a flow list.
var swept = regexp.MustCompile(`^[A-Za-z0-9._/%-]{1,40}$`)

// sweep explains how to make one run per value, if n at the key path is a list of values or a
// comma-separated text; "" if it is not.
func (d *decoder) sweep(n *tree.Node, path string) string {
	if n == nil || path == "placement" || d.varies == nil || !d.varies(path) {
		return ""
	}
	var values []string
	switch n.Shape {
	case tree.List:
		for _, item := range n.Items {
			values = append(values, strings.TrimSpace(item.Text)) // "" if not a text
		}
	case tree.Text:
		if values = strings.Split(n.Text, ","); len(values) == 1 {
			return ""
		}
	default:
		return ""
	}
	for i, v := range values {
		if values[i] = strings.TrimSpace(v); !swept.MatchString(values[i]) {
			return ""
		}
	}
	if len(values) < 2 || len(values) > 8 {
		return ""
	}
	says := fmt.Sprintf(": a file with matrix: {%s: [%s]} makes a run of each", path, strings.Join(values, ", "))
	for _, v := range values {
		if err := d.in.Drivers.Absent(v); path == "system.driver" && err != nil {
			absent, _, _ := strings.Cut(err.Error(), ": ") // without the rejected command
			says += "; " + absent
		}
	}
	return says
}

var (
	flagWord   = regexp.MustCompile(`--([a-z][a-z.-]*)`)
	optionWord = regexp.MustCompile(`--option ([a-z.]+)=('[^']*'|[^ ,']+)`)
)

// foreign suggests what to write for an unknown key that another tool has; "" if weir does not know
// it.
func foreign(name string) string {
	flags, advice := Elsewhere(name)
	if strings.Contains(advice, "has no flag") {
		return "" // it is this file
	}
	if advice != "" {
		advice = optionWord.ReplaceAllString(advice, "system: {options: {$1: $2}}")
		return ": " + flagWord.ReplaceAllStringFunc(advice, keyOfFlag)
	}
	if flags == "" {
		return ""
	}
	words := strings.Split(flags, " or ")
	for i, w := range words {
		flag, value, _ := strings.Cut(w, " ")
		if words[i] = keyOfFlag(flag); words[i] == flag {
			words[i] = "the flag " + w // not a key of a file
		} else {
			words[i] = fmt.Sprintf("%q", words[i])
			if value != "" {
				words[i] += " (" + value + ")"
			}
		}
	}
	return fmt.Sprintf(", did you mean %s?", strings.Join(words, " or "))
}

// keyOfFlag returns the key that a flag sets, or the flag if it sets none.
func keyOfFlag(flag string) string {
	name := strings.TrimPrefix(flag, "--")
	if name == "address" {
		return "system.options.address"
	}
	for _, k := range keys {
		if k.Path == name || k.Short == name {
			return k.Path
		}
	}
	return flag
}
