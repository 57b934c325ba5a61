package result

// The methods of WireParts.
const (
	WireExact  = "exact"
	WireBounds = "bounds"
)

// A Wire says where the time of messages went, by the instants at which their TCP segments left this
// host and the answers came in. Messages are sampled in windows of time.
type Wire struct {
	Missing      string     `json:"missing,omitempty"`       // why nothing is known; absent if something is
	Windows      int        `json:"windows"`                 // in which messages were sampled
	Segments     uint64     `json:"segments"`                // recorded
	LostSegments uint64     `json:"lost_segments,omitempty"` // found no room, each of which ended a window
	Connections  int        `json:"connections"`             // TCP connections of the run in the process
	Encrypted    bool       `json:"encrypted,omitempty"`     // TLS hides messages: their segments were found by elimination
	SameHost     bool       `json:"same_host,omitempty"`     // the system is on this host too: system includes what it waited for cores
	CostShare    *float64   `json:"cost_share,omitempty"`    // estimated share of recording in the process's processor time; absent if unknown
	Send         *WireParts `json:"send,omitempty"`          // until the confirmation came in; absent if nothing is known
	E2E          *WireParts `json:"e2e,omitempty"`           // until the delivery came in
}

// WireParts split up a latency. The three distributions are of the messages whose segments are known.
type WireParts struct {
	Method    string `json:"method"`              // WireExact: the segments of all of them are known; WireBounds: of some to within 5 % of the message's latency
	Sampled   uint64 `json:"sampled"`             // messages that completed: the sum of the next five
	Exact     uint64 `json:"exact"`               // the segments are known
	Bounded   uint64 `json:"bounded,omitempty"`   // to within 5 % of the message's latency
	Ambiguous uint64 `json:"ambiguous,omitempty"` // left out: several segments may have brought the answer
	Unseen    uint64 `json:"unseen,omitempty"`    // left out: not found in a segment
	Late      uint64 `json:"late,omitempty"`      // left out: recording had ended when they completed

	Held    *Dist `json:"held"`     // from the hand-over to the client until the last answer that came in on the connection before the message left; 0: none came. The client, or TCP, may have waited for it
	HostOut *Dist `json:"host_out"` // from there until the last byte left this host
	System  *Dist `json:"system"`   // from there until the last byte of the answer came in: network and system
	HostIn  *Dist `json:"host_in"`  // from there until the program had it

	At []WireAt `json:"at,omitempty"` // at percentiles of the response (closed loop: service)
}

// A WireAt holds the mean parts of the messages whose latency is about that of a percentile: within an
// eighth, or a third if they are few. There are at least five, and at least half of the sampled ones.
type WireAt struct {
	P          float64 `json:"p"`
	Messages   uint64  `json:"messages"`
	LeftOut    uint64  `json:"left_out,omitempty"` // sampled messages of that latency whose parts are unknown
	LatenessNS int64   `json:"lateness_ns"`        // of the generator
	BlockedNS  int64   `json:"blocked_ns"`         // waiting for a slot or for the client
	HeldNS     int64   `json:"held_ns"`
	HostOutNS  int64   `json:"host_out_ns"`
	SystemNS   int64   `json:"system_ns"`
	HostInNS   int64   `json:"host_in_ns"`
	HostShare  float64 `json:"host_share"`      // lateness, host_out and host_in, of the sum: at least that is this host's
	HostMost   float64 `json:"host_share_most"` // the same with held: at most that is

	Moved *float64 `json:"moved,omitempty"` // share of the percentile that is this host's at most: the sampled messages with and without its parts; absent if they do not stand for the run
}
