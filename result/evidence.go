package result

// An Evidence is what a verdict needs and no other part of a result tells. With it,
// the verdict can be reached again from result.json alone. Instants count from the
// epoch.
type Evidence struct {
	Subscriptions int    `json:"subscriptions"`       // to which each confirmed message is owed; 0: nothing consumes
	Planned       uint64 `json:"planned,omitempty"`   // messages of the plan, counted anew after the run; absent: not counted
	EndedFor      string `json:"ended_for,omitempty"` // why weir ended the run itself; absent: it did not
	Cut           bool   `json:"cut,omitempty"`       // the measured window ended before its time

	HighestPerS float64 `json:"highest_per_s"`         // messages/s that are offered, where that is most; of a closed loop and a trace the mean; 0: nothing is sent
	RateVaries  bool    `json:"rate_varies,omitempty"` // the scenario plans several rates
	WhenFull    string  `json:"when_full,omitempty"`   // what was done with a message that found no room: "wait", "drop" or "fail"
	MayFail     float64 `json:"may_fail"`              // share of the sent messages that may fail or stay unconfirmed (limits.failed), 0 to 1
	Sent        uint64  `json:"sent_in_window"`        // messages handed over in the measured window, whenever they were due
	Received    uint64  `json:"received_in_window"`    // deliveries in the measured window
	Behind      uint64  `json:"behind"`                // messages of the whole run that were not sent because lanes were late by their own doing
	DiskFull    bool    `json:"disk_full,omitempty"`   // the coordinator's disk had no room for the agents' reports
	FirstCalls  uint64  `json:"first_calls,omitempty"` // deliveries that the first client call of each consumer yielded; only where a receiver has a window of its own
	StillHeld   *uint64 `json:"still_held,omitempty"`  // messages that the system still held for a run that received nothing; absent: it does not tell

	BySystem []Block `json:"blocked_by_system,omitempty"` // when the system said that it takes no messages for now

	Errors  *Errors      `json:"errors,omitempty"`  // absent: there were none
	Blocked *BlockedTime `json:"blocked,omitempty"` // absent: the client library never makes a message wait
	Filled  *Filled      `json:"filled,omitempty"`  // absent: no backlog was drained
	Cost    *Cost        `json:"cost,omitempty"`    // of the instrument on this host; of a fleet each agent has its own
}

// An Errors sums up the errors of a run.
type Errors struct {
	Kinds  int    `json:"kinds"`            // different errors: so many lines of kind "error" are in events.jsonl
	Worst  string `json:"worst,omitempty"`  // the error that failed most messages; absent: none failed any
	Failed uint64 `json:"failed,omitempty"` // messages that failed by it

	Blocked uint64 `json:"blocked,omitempty"` // messages that failed because the system takes none for now, by whichever error
}

// A Block is a time in which the system answered, and took none of the messages of at
// least one producer. Of a fleet each agent has its own.
type Block struct {
	FromNS int64  `json:"from_ns"`
	ToNS   int64  `json:"to_ns"`
	Why    string `json:"why"`            // in the system's words
	Open   bool   `json:"open,omitempty"` // it had not ended when the drain did
}

// A BlockedTime is the time for which messages waited for the client library or for
// room. For a sample of the calls, weir knows whether their threads slept.
type BlockedTime struct {
	Untold    bool  `json:"untold,omitempty"`   // the kernel of at least one host does not tell what threads did
	PublishNS int64 `json:"publish_ns"`         // of goroutines inside the client library, while a message waited
	FullNS    int64 `json:"full_ns"`            // of goroutines that waited for room
	WokenNS   int64 `json:"woken_ns,omitempty"` // of the lateness of all messages measured: goroutines that slept woke after their lane had turned to the message
	LookedNS  int64 `json:"looked_ns"`          // of a sample of those calls
	BusyNS    int64 `json:"busy_ns"`            // of that, the thread ran or waited for a core
}

// A Filled is a backlog when the consumers began to drain it, and when they got it.
type Filled struct {
	Messages uint64 `json:"messages"`       // delivered in the drain
	Held     uint64 `json:"held"`           // confirmed and not delivered when the consumers started, for each subscription
	Full     bool   `json:"full,omitempty"` // the system took no more before the consumers started
	BeganNS  int64  `json:"began_ns"`       // when the consumers started; 0: they did not
	FirstNS  int64  `json:"first_ns"`       // the first delivery; 0: there was none
	LastNS   int64  `json:"last_ns"`        // the last
}

// A Cost is what the instrument itself costs on a host, measured before the run.
type Cost struct {
	CeilingPerS float64 `json:"ceiling_per_s,omitempty"` // messages/s that one lane gets through with a system that costs nothing; absent: not measured
	RecordNS    float64 `json:"record_ns,omitempty"`     // to record all that one message leaves; absent: not measured
}
