package scenario

import (
	"strings"
	"testing"
)

// TestKeysOfOtherToolsAreSuggested: an unknown key gets the same suggestion as the flag of that name,
// in the form of a key.
func TestKeysOfOtherToolsAreSuggested(t *testing.T) {
	for text, want := range map[string]string{
		"rate: 5/s":                  "rate: unknown key here, did you mean \"load.rate\"? (",
		"duration: 5s":               "duration: unknown key, did you mean \"measure\"? (",
		"qps: 5":                     "qps: unknown key, did you mean \"load.rate\"? (",
		"threads: 5":                 "threads: unknown key, did you mean \"topology.producers\" or \"topology.consumers\"? (",
		"host: x":                    "host: unknown key, did you mean \"system.options.address\"? (",
		"url: x":                     "url: unknown key, did you mean \"system.options.address\"? (",
		"load: {stages: []}":         "load.stages: unknown key: a load that changes is load.profile of a scenario file (",
		"acks: all":                  "acks: unknown key: use system.guarantee, or the driver's own option, for kafka system: {options: {acks: VALUE}} (",
		"system: {qos: 1}":           "system.qos: unknown key: use system.guarantee, or system: {options: {qos: VALUE}} (",
		"output: x":                  "output: unknown key, did you mean the flag --out? (",
		"system: {url: x}":           "system.url: unknown key, did you mean \"system.options.address\"? (",
		"topology: {producer: 3}":    "topology.producer: unknown key, did you mean \"topology.producers\"? (",
		"system: {addrs: [a]}":       "system.addrs: unknown key, did you mean \"system.options.address\"? (",
		"load: {raet: 5/s}":          "load.raet: unknown key, did you mean \"rate\"? (",
		"messages: {size: 1KiB}":     "messages: is a mapping (a whole number from 1 to 18446744073709551615), did you mean \"message\"?",
		"msgs: {size: 1KiB}":         "msgs: unknown key, did you mean \"message\"?",
		"consumer: {prefetch: 10}":   "consumer: unknown key, did you mean \"consume\"? (topology.consumers is how many there are)",
		"consumers: {prefetch: 10}":  "consumers: unknown key, did you mean \"consume\"? (topology.consumers is how many there are)",
		"consumers: 10":              "consumers: unknown key here, did you mean \"topology.consumers\"? (",
		"producer: {rate: 5/s}":      "producer: unknown key, did you mean \"load\"? (topology.producers is how many there are)",
		"message: {payload-size: 5}": "message.payload-size: unknown key, did you mean \"message.size\"? (",
	} {
		in := Inputs{File: "f.yaml", Text: []byte("weir: 1\n" + text + "\n"), Drivers: registry(t)}
		if _, err := Resolve(in); err == nil || !strings.Contains(err.Error(), ": "+want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

// TestSeveralValuesSuggestMatrix: a list for a key with a single value is rejected with the lines that
// make one run per value.
func TestSeveralValuesSuggestMatrix(t *testing.T) {
	for text, want := range map[string]string{
		"load: {rate: [100/s, 200/s]}":           "load.rate: is a list (messages per time such as 20000/s, 0.5/s, 100/m): a file with matrix: {load.rate: [100/s, 200/s]} makes a run of each",
		"load: {rate: '100,500'}":                "load.rate: \"100,500\": this may be one number or a list: write 100500/s for the number: a file with matrix: {load.rate: [100, 500]} makes a run of each",
		"load: {rate: '100,500,900'}":            "write 100500900/s for the number: a file with matrix: {load.rate: [100, 500, 900]} makes a run of each",
		"message: {size: '64,256'}":              "message.size: \"64,256\" may be one number or a list: write 64256B for the number: a file with matrix: {message.size: [64, 256]} makes a run of each",
		"message: {size: '64,256,1024'}":         "is not a size (32B to 64MiB, such as 256B, 1KiB, 1MB): a file with matrix: {message.size: [64, 256, 1024]} makes a run of each",
		"topology: {producers: '10,100'}":        "topology.producers: 10,100 may be one number or a list: write 10100 for the number: a file with matrix: {topology.producers: [10, 100]} makes a run of each",
		"system: {driver: [kafka, jetstream]}":   "): a file with matrix: {system.driver: [kafka, jetstream]} makes a run of each",
		"system: {driver: 'kafka,jetstream'}":    "): a file with matrix: {system.driver: [kafka, jetstream]} makes a run of each",
		"mode: [stream, request]":                "): a file with matrix: {mode: [stream, request]} makes a run of each",
		"mode: 'stream,request'":                 "): a file with matrix: {mode: [stream, request]} makes a run of each",
		"system: {options: {storage: 'a, b c'}}": "storage",
	} {
		in := Inputs{File: "f.yaml", Text: []byte("weir: 1\n" + text + "\n"), Drivers: registry(t)}
		_, err := Resolve(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
	for _, text := range []string{"load: {rate: '1,000'}", "load: {rate: '1,234/s'}", "messages: 1,000,000", "message: {size: '1,024'}", "topology: {producers: '1,000'}"} {
		if _, err := Resolve(Inputs{File: "f.yaml", Text: []byte("weir: 1\n" + text + "\n"), Drivers: registry(t)}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
