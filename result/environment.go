package result

import (
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/pace"
)

// A Host is what the generator's process and its host did in the run.
type Host struct {
	Usage          *host.Usage       `json:"usage,omitempty"`          // of the whole run
	Lanes          int               `json:"lanes"`                    // pacing threads; 0 in a closed loop
	LaneWaits      uint64            `json:"lane_waits"`               // times that a lane's backlog was full, so that it waited
	Calibration    *pace.Calibration `json:"calibration,omitempty"`    // of the waiting, before the run
	LedgerEvicted  uint64            `json:"ledger_evicted"`           // messages closed before all was known of them, because of the ledger's bound
	SlotsAbandoned uint64            `json:"slots_abandoned"`          // retired because a client kept their bytes
	BacklogMax     uint64            `json:"backlog_max"`              // largest over the subscriptions: confirmed, and neither delivered nor lost nor dead letters
	Hiccups        *Hiccups          `json:"hiccups,omitempty"`        // of a thread that only waits, beside the run
	ListenedNS     int64             `json:"listened_ns,omitempty"`    // for how long consumers listened on after the end of the drain
	DrainNeedsNS   int64             `json:"drain_needs_ns,omitempty"` // what the pending messages would still have needed; absent: none, or not known
}

// Servers are what the processes of the system did that weir started, or was told to
// watch, between the readings nearest to the bounds of the measured window.
type Servers struct {
	SpanS     float64            `json:"span_s"` // between those readings
	Processes []host.ServerUsage `json:"processes"`
}

// An Efficiency is what the messages of the measured window took. A figure is absent
// where it is not known, and Unknown says why.
type Efficiency struct {
	Messages string `json:"messages"` // which count: "confirmed", or "received" where weir sends nothing

	MessagesPerCPUS       *float64 `json:"messages_per_cpu_s,omitempty"`       // messages a second by the cores that the servers used
	WrittenPerMessageByte *float64 `json:"written_per_message_byte,omitempty"` // bytes that the servers wrote to disks by bytes of payload
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

// Hiccups are how late a thread woke that only slept.
type Hiccups struct {
	Count  uint64 `json:"count"`
	P50NS  int64  `json:"p50_ns"`
	P99NS  int64  `json:"p99_ns"`
	P999NS int64  `json:"p999_ns"`
	MaxNS  int64  `json:"max_ns"`
	HeldNS *int64 `json:"held_ns,omitempty"` // of the measured window, in stalls of 10 ms or more; nil: an older version did not sum them
}

// An Environment is environment.json: where and with what it was measured.
type Environment struct {
	Schema string            `json:"schema"`
	Weir   Build             `json:"weir"`
	Hosts  []host.Facts      `json:"hosts"` // of a fleet one for each agent, with its name; before them the coordinator's where no agent is on it
	Clock  Clock             `json:"clock"`
	System EnvironmentSystem `json:"system"` // the running system
}

// A Build is the weir that measured.
type Build struct {
	Version string `json:"version"` // and which build where that does not name the source
	Go      string `json:"go"`
	OS      string `json:"os"`   // GOOS
	Arch    string `json:"arch"` // GOARCH
}

// A Clock is how well the run's clock and its waiting are known.
type Clock struct {
	EpochErrorNS *int64           `json:"epoch_error_ns,omitempty"` // bound; -1 where the host has no clock to compare with; absent before the run began
	Calibration  pace.Calibration `json:"calibration"`
}

// EnvironmentSystem is what decides what the system's figures mean.
type EnvironmentSystem struct {
	Driver   string            `json:"driver"`
	Client   string            `json:"client"`
	Server   Server            `json:"server"`
	Settings map[string]string `json:"settings"`          // read from the running system, by the vendor's names
	Started  *Started          `json:"started,omitempty"` // absent where weir did not start it
}

// Started is how weir started the system.
type Started struct {
	By        string    `json:"by"`                // embedded, process
	Agent     string    `json:"agent,omitempty"`   // of a fleet, the agent on the host; absent: where weir was started
	Recipe    string    `json:"recipe,omitempty"`  // by which
	Source    string    `json:"source,omitempty"`  // of the programs: go, maven, apt, pypi; host where they are the host's own
	Version   string    `json:"version,omitempty"` // of what was installed, where the source tells it
	Data      string    `json:"data,omitempty"`    // what their data lay on, where weir put it there: FUSE, or absent
	Processes []Process `json:"processes"`
}

// A Process is a process that belongs to the system, and those below it.
type Process struct {
	Name string `json:"name"` // server-2
	Node int    `json:"node"` // 1 and up
	Pids []int  `json:"pids"` // when it had started, on the agent's host, without an agent on the first of Hosts
}
