package result

// Slowest are the slowest messages of the measured window in one distribution, and what
// happened while they were under way. Instants are since the epoch.
type Slowest struct {
	Of       string        `json:"of"`                  // "send", "e2e" or "rtt": of its response, in a closed loop of its service
	Messages []SlowMessage `json:"messages"`            // the slowest first, 20 at most
	Clusters []SlowCluster `json:"clusters"`            // when they were under way, in the order of time
	PeriodNS *int64        `json:"period_ns,omitempty"` // how far apart clusters begin; absent where they are fewer than five, or come at no beat
	Beside   []Beside      `json:"beside,omitempty"`    // what happened beside them, what came beside most of them first
}

// A SlowMessage is one of them.
type SlowMessage struct {
	NS          int64    `json:"ns"`               // its response, in a closed loop its service
	DueNS       int64    `json:"due_ns"`           // in a closed loop when it was started
	StartNS     int64    `json:"start_ns"`         // when it was handed to the client
	AtNS        int64    `json:"at_ns"`            // when it was confirmed, delivered or answered
	Producer    int      `json:"producer"`         // from 0
	Destination int      `json:"destination"`      // from 0
	Seq         uint64   `json:"seq"`              // in its stream
	Beside      []string `json:"beside,omitempty"` // what happened between DueNS and AtNS
}

// A SlowCluster is a time in which slow messages were under way.
type SlowCluster struct {
	FromNS   int64 `json:"from_ns"`
	ToNS     int64 `json:"to_ns"`
	Messages int   `json:"messages"`
	// What the logs of servers said then; absent where weir did not start them on its own host.
	Log *ServerLog `json:"log,omitempty"`
}

// A ServerLog is what the logs of servers said in a time. Of a cluster it is from one second
// before it, or from the end of the one before, until 0.1 s after its end.
type ServerLog struct {
	Lines       []LogLine `json:"lines"`                   // in the order of time; of each server the first five that differ by more than numbers, and 15 at most
	More        uint64    `json:"more,omitempty"`          // lines that they said then, too
	MoreAtLeast bool      `json:"more_at_least,omitempty"` // the logs are so long that not all of them was read
}

// A LogLine is a line of the log of a server, without what moves a cursor, and shortened.
type LogLine struct {
	TNS     int64  `json:"t_ns"`    // when weir saw it: up to 0.1 s after the server wrote it
	Process string `json:"process"` // "server-2"
	Node    int    `json:"node"`
	Text    string `json:"text"`
}

// A Beside is something that happened while slow messages were under way.
type Beside struct {
	What     string  `json:"what"`
	Messages int     `json:"messages"`
	Spells   int     `json:"spells,omitempty"` // of the spells of the slowest, those more than a second apart, how many met it; no more than times that it happened
	Chance   float64 `json:"chance,omitempty"` // that as many would, if it had nothing to do with them
	ByChance float64 `json:"by_chance"`        // share of the window's instants at which a message that is due meets it, when it takes as long as the median of the slowest
}
