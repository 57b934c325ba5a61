package result

// Slowest are the slowest messages of the measured window in one distribution, and what happened
// while they were in flight. Instants are since the epoch.
type Slowest struct {
	Of       string        `json:"of"`                  // "send", "e2e" or "rtt": by response time, in a closed loop by service time
	Messages []SlowMessage `json:"messages"`            // slowest first, at most 20
	Clusters []SlowCluster `json:"clusters"`            // when they were in flight, in order of time
	PeriodNS *int64        `json:"period_ns,omitempty"` // interval at which clusters begin; absent if there are fewer than five, or no period
	Beside   []Beside      `json:"beside,omitempty"`    // coincident events, those that coincide with most of them first
}

// A SlowMessage is one of the slowest messages.
type SlowMessage struct {
	NS          int64    `json:"ns"`               // response time, in a closed loop service time
	DueNS       int64    `json:"due_ns"`           // in a closed loop its start
	StartNS     int64    `json:"start_ns"`         // when it was handed to the client
	AtNS        int64    `json:"at_ns"`            // when it was confirmed, delivered or answered
	Producer    int      `json:"producer"`         // from 0
	Destination int      `json:"destination"`      // from 0
	Seq         uint64   `json:"seq"`              // in its stream
	Beside      []string `json:"beside,omitempty"` // events between DueNS and AtNS
}

// A SlowCluster is a period in which slow messages were in flight.
type SlowCluster struct {
	FromNS   int64 `json:"from_ns"`
	ToNS     int64 `json:"to_ns"`
	Messages int   `json:"messages"`
	// Server logs of that period; absent if weir did not start the servers on its own host.
	Log *ServerLog `json:"log,omitempty"`
}

// A ServerLog holds the server logs of a period. For a cluster it covers from one second before it,
// or from the end of the previous one, until 0.1 s after its end.
type ServerLog struct {
	Lines       []LogLine `json:"lines"`                   // in order of time; per server the first five that differ in more than numbers, at most 15 in all
	More        uint64    `json:"more,omitempty"`          // further lines in that period
	MoreAtLeast bool      `json:"more_at_least,omitempty"` // the logs are so long that they were not read completely
}

// A LogLine is a line of a server's log, without terminal control sequences, and shortened.
type LogLine struct {
	TNS     int64  `json:"t_ns"`    // when weir saw it: up to 0.1 s after the server wrote it
	Process string `json:"process"` // "server-2"
	Node    int    `json:"node"`
	Text    string `json:"text"`
}

// A Beside is an event that coincided with slow messages.
type Beside struct {
	What     string  `json:"what"`
	Messages int     `json:"messages"`
	Episodes int     `json:"spells,omitempty"` // number of episodes of the slowest messages (more than a second apart) that met it; at most the number of times it happened
	Chance   float64 `json:"chance,omitempty"` // probability that as many would meet it by chance
	ByChance float64 `json:"by_chance"`        // share of the window's instants at which a message due then meets it, if it takes as long as the median of the slowest
}
