package scenario

import (
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

func TestExplainNamesSourceOfEveryValue(t *testing.T) {
	t.Parallel()
	const file = `weir: 1
name: both
system:
  options: {timeout: 3s, password: '${env:PASSWORD}'}
scenarios:
- load: {rate: 5/s}
  matrix: {system.options.storage: [memory]}
`
	runs := must.Get(Resolve(within(t, file, []string{"WEIR_SEED=7", "WEIR_SYSTEM_OPTIONS_USER=${env:ME}"}, Override{"--size", "message.size", "64B"}, Override{"--slo", "slo", "[lost == 0]"})))(t)
	const want = `weir: 1                         # f.yaml:1:7
name: both-memory               # f.yaml:2:7, with the values of the matrix
system:
  driver: jetstream             # default
  start: embedded               # default of driver jetstream
  nodes: 1                      # default
  options:
    password: "${env:PASSWORD}" # f.yaml:4:36
    server.sync: false          # default of driver jetstream
    storage: memory             # f.yaml:7:37 (matrix, scenarios[0])
    timeout: 3s                 # f.yaml:4:22
    user: "${env:ME}"           # WEIR_SYSTEM_OPTIONS_USER
topology:
  destinations: 1               # default
  partitions: 1                 # default
  replication: 1                # default
  producers: 1                  # default
  subscriptions: 1              # default
  consumers: 1                  # default
load:
  rate: 5/s                     # f.yaml:6:16 (scenarios[0])
  arrival: constant             # default
  batch: 1                      # default
  in_flight: 10000              # default
  when_full: wait               # default
message:
  size: 64B                     # --size
  payload: random               # default
  keys: none                    # default
consume:
  settle: each                  # default of driver jetstream
  prefetch: 0                   # default of driver jetstream
  work: 0s                      # default
mode: stream                    # default of driver jetstream
warmup: 2s                      # default
measure: 10s                    # default
drain: 30s                      # default
repeat: 1                       # default
slo: ["lost == 0"]              # --slo
limits:
  memory: 1GiB                  # default
  failed: 0                     # default
seed: 7                         # WEIR_SEED
`
	golden.Equal(t, want, string(runs[0].Explain()), "Explain")
}

func TestExplainStaysOnItsLine(t *testing.T) {
	t.Parallel()
	in := inputs(t, "weir: 1\nseed: 5\n")
	in.File = "odd\nname: evil\u2028#.yaml"
	s := must.Get(only(in))(t)
	if diff := again(t, s, s.Explain()); diff != "" {
		t.Error(diff)
	}
}
