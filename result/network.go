package result

// A Network is the emulated network that weir put between the clients and the servers that it
// started.
type Network struct {
	Means   string `json:"means"`             // what carried the packets: "weir's own link of TUN devices"
	Profile string `json:"profile,omitempty"` // name in the scenario
	Source  string `json:"source,omitempty"`  // of the profile's figures

	BareRoundTripNS int64 `json:"bare_round_trip_ns"` // of the link without any conditions: its own overhead
	RoundTripNS     int64 `json:"round_trip_ns"`      // with them
	PacketsPerS     int64 `json:"packets_per_s"`      // of 1000 bytes, carried in the slower direction without any conditions

	ToSystem   Direction `json:"to_system"`
	FromSystem Direction `json:"from_system"`
}

// A Direction is one direction of a network.
type Direction struct {
	Asked    Conditions  `json:"asked"`
	Measured Conditions  `json:"measured"` // before the run, by the link's own packets
	Probes   Probes      `json:"probes"`   // number of packets behind it
	Carried  PacketsDone `json:"carried"`  // in the whole run
}

// Conditions are what one direction does to packets. Measured shares are relative to the packets
// observed; measured values that were not requested are absent.
type Conditions struct {
	LatencyNS    int64    `json:"latency_ns"`             // requested value; measured: the median
	LeastNS      int64    `json:"least_ns,omitempty"`     // measured
	MeanNS       int64    `json:"mean_ns,omitempty"`      // measured
	JitterNS     int64    `json:"jitter_ns,omitempty"`    // measured: the standard deviation
	Distribution string   `json:"distribution,omitempty"` // of the jitter, requested
	Loss         *float64 `json:"loss,omitempty"`         // measured: including corrupted packets, which checksums detect
	Duplicate    *float64 `json:"duplicate,omitempty"`
	Reorder      *float64 `json:"reorder,omitempty"`
	Corrupt      *float64 `json:"corrupt,omitempty"` // requested
	BitsPerS     *int64   `json:"bits_per_s,omitempty"`
}

// Probes are the packet counts behind a measurement of one direction.
type Probes struct {
	Delays int `json:"delays"`           // packets far apart, for latency and jitter
	Shares int `json:"shares,omitempty"` // packets close together, for loss, duplication and order
	Rate   int `json:"rate,omitempty"`   // packets beyond the bandwidth
}

// PacketsDone counts the packets of one direction in the whole run, including connecting and
// draining.
type PacketsDone struct {
	Packets    int64 `json:"packets"` // sent into it
	Bytes      int64 `json:"bytes"`   // of them, IP headers included
	Lost       int64 `json:"lost,omitempty"`
	Duplicated int64 `json:"duplicated,omitempty"`
	Reordered  int64 `json:"reordered,omitempty"`
	Corrupted  int64 `json:"corrupted,omitempty"`
	Cut        int64 `json:"cut,omitempty"`      // lost to a partition
	Queue      int64 `json:"queue,omitempty"`    // dropped because too many waited for bandwidth
	Overflow   int64 `json:"overflow,omitempty"` // dropped because the link was overloaded: not requested
}
