package scenario

import (
	"strings"
	"testing"
)

// TestKeysOfOtherToolsAreGuessed: an unknown key gets the guess that the flag of its name
// gets on a command line, as the key that it is.
func TestKeysOfOtherToolsAreGuessed(t *testing.T) {
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
		"message: {payload-size: 5}": "message.payload-size: unknown key, did you mean \"message.size\"? (",
	} {
		in := Inputs{File: "f.yaml", Text: []byte("weir: 1\n" + text + "\n"), Drivers: registry(t)}
		if _, err := Resolve(in); err == nil || !strings.Contains(err.Error(), ": "+want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}
