package result

import (
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
)

// A Host is the usage of the generator's process and its host during the run.
type Host struct {
	Usage          *host.Usage       `json:"usage,omitempty"`          // of the whole run
	Pacers         int               `json:"lanes"`                    // pacing threads; 0 in a closed loop
	PacerWaits     uint64            `json:"lane_waits"`               // times that a pacer waited because its backlog was full
	Calibration    *pace.Calibration `json:"calibration,omitempty"`    // of the pacing, before the run
	LedgerEvicted  uint64            `json:"ledger_evicted"`           // messages closed with unknown fate, because of the ledger's bound
	SlotsAbandoned uint64            `json:"slots_abandoned"`          // retired because a client kept their bytes
	BacklogMax     uint64            `json:"backlog_max"`              // largest over the subscriptions: confirmed, and neither delivered nor lost nor dead letters
	Hiccups        *Hiccups          `json:"hiccups,omitempty"`        // scheduling stalls of a thread that only sleeps, beside the run
	ListenedNS     int64             `json:"listened_ns,omitempty"`    // how long consumers kept listening after the end of the drain
	DrainNeedsNS   int64             `json:"drain_needs_ns,omitempty"` // time that the pending messages would still have needed; absent: none pending, or unknown
}

// Servers is the usage of the system's processes that weir started or watched, between the readings
// nearest to the bounds of the measured window.
type Servers struct {
	SpanS     float64            `json:"span_s"` // between those readings
	Processes []host.ServerUsage `json:"processes"`
}

// An Efficiency is the cost of the messages of the measured window. A figure is absent if unknown,
// and Unknown says why.
type Efficiency struct {
	Messages string `json:"messages"` // which count: "confirmed", or "received" if weir sends nothing

	MessagesPerCPUS       *float64 `json:"messages_per_cpu_s,omitempty"`       // messages a second per core used by the servers
	WrittenPerMessageByte *float64 `json:"written_per_message_byte,omitempty"` // bytes written to disk by the servers per byte of payload
	PricePerHour          *float64 `json:"price_per_hour,omitempty"`           // as the user gave it
	CostPerMillion        *float64 `json:"cost_per_million,omitempty"`         // of messages, in the unit of the price

	Unknown []Unknown `json:"unknown,omitempty"`
}

// The values of Efficiency.Messages.
const (
	CountConfirmed = "confirmed"
	CountReceived  = "received"
)

// An Unknown says why a figure is absent.
type Unknown struct {
	Figure string `json:"figure"`
	Why    string `json:"why"`
}

// Hiccups are how late a thread woke that only slept: jHiccup's scheduling stalls.
type Hiccups struct {
	Count  uint64 `json:"count"`
	P50NS  int64  `json:"p50_ns"`
	P99NS  int64  `json:"p99_ns"`
	P999NS int64  `json:"p999_ns"`
	MaxNS  int64  `json:"max_ns"`
	HeldNS *int64 `json:"held_ns,omitempty"` // of the measured window, in stalls of 10 ms or more; nil in results of older versions
}

// An Environment is environment.json: where and with what the run was measured.
type Environment struct {
	Schema string            `json:"schema"`
	Weir   Build             `json:"weir"`
	Hosts  []host.Facts      `json:"hosts"` // in a fleet one per agent, with its name; before them the coordinator's if no agent runs on it
	Clock  Clock             `json:"clock"`
	System EnvironmentSystem `json:"system"` // the running system
}

// A Build is the weir that measured.
type Build struct {
	Version string `json:"version"` // including the build if the version does not name the source
	Go      string `json:"go"`
	OS      string `json:"os"`   // GOOS
	Arch    string `json:"arch"` // GOARCH
}

// A Clock is the accuracy of the run's clock and of its pacing.
type Clock struct {
	EpochErrorNS *int64           `json:"epoch_error_ns,omitempty"` // bound; -1 if the host has no clock to compare with; absent before the run began
	Calibration  pace.Calibration `json:"calibration"`
}

// EnvironmentSystem holds the settings that determine what the system's figures mean.
type EnvironmentSystem struct {
	Driver   string            `json:"driver"`
	Client   string            `json:"client"`
	Server   Server            `json:"server"`
	Settings map[string]string `json:"settings"`          // read from the running system, by the vendor's names
	Started  *Started          `json:"started,omitempty"` // absent if weir did not start it
}

// Started is how weir started the system.
type Started struct {
	By        string    `json:"by"`                // embedded, process
	Agent     string    `json:"agent,omitempty"`   // in a fleet, the agent on the host; absent: where weir was started
	Recipe    string    `json:"recipe,omitempty"`  // name of the recipe
	Source    string    `json:"source,omitempty"`  // of the programs: go, maven, apt, pypi; host if they are the host's own
	Version   string    `json:"version,omitempty"` // of what was installed, if the source reports it
	Data      string    `json:"data,omitempty"`    // file system that weir put their data on: FUSE, or absent
	Processes []Process `json:"processes"`
}

// A Process is a process that belongs to the system, with its descendants.
type Process struct {
	Name string `json:"name"` // server-2
	Node int    `json:"node"` // 1 and up
	Pids []int  `json:"pids"` // at its start, on the agent's host, without an agent on the first of Hosts
}
