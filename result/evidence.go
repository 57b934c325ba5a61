package result

// An Evidence is what a verdict needs and no other part of a result contains. With it, the verdict
// can be recomputed from result.json alone. Instants count from the epoch.
type Evidence struct {
	Subscriptions int    `json:"subscriptions"`       // that each confirmed message must reach; 0: nothing consumes
	Planned       uint64 `json:"planned,omitempty"`   // messages of the plan, counted again after the run; absent: not counted
	EndedFor      string `json:"ended_for,omitempty"` // why weir itself ended the run; absent: it did not
	Cut           bool   `json:"cut,omitempty"`       // the measured window ended early

	HighestPerS float64 `json:"highest_per_s"`         // highest offered rate in messages/s; in a closed loop and for a trace the mean; 0: nothing is sent
	RateVaries  bool    `json:"rate_varies,omitempty"` // the scenario plans several rates
	WhenFull    string  `json:"when_full,omitempty"`   // what was done with a message that found no free slot: "wait", "drop" or "fail"
	MayFail     float64 `json:"may_fail"`              // share of the sent messages that may fail or stay unconfirmed (limits.failed), 0 to 1
	Sent        uint64  `json:"sent_in_window"`        // messages handed over in the measured window, whenever they were due
	Received    uint64  `json:"received_in_window"`    // deliveries in the measured window
	Behind      uint64  `json:"behind"`                // messages of the whole run that were not sent because pacers were late by their own fault
	DiskFull    bool    `json:"disk_full,omitempty"`   // the coordinator's disk had no space for the agents' reports
	FirstCalls  uint64  `json:"first_calls,omitempty"` // deliveries yielded by the first client call of each consumer; only if a receiver has a window of its own
	StillHeld   *uint64 `json:"still_held,omitempty"`  // messages that the system still held for a run that received nothing; absent: unknown

	BySystem []Block `json:"blocked_by_system,omitempty"` // when the system said that it accepts no messages

	Errors  *Errors      `json:"errors,omitempty"`  // absent: none
	Blocked *BlockedTime `json:"blocked,omitempty"` // absent: the client library never makes a message wait
	Filled  *Filled      `json:"filled,omitempty"`  // absent: no backlog was drained
	Cost    *Cost        `json:"cost,omitempty"`    // of the instrument on this host; in a fleet each agent has its own
}

// An Errors summarizes the errors of a run.
type Errors struct {
	Kinds  int    `json:"kinds"`            // different errors: the number of lines of kind "error" in events.jsonl
	Worst  string `json:"worst,omitempty"`  // the error that failed most messages; absent: none failed any
	Failed uint64 `json:"failed,omitempty"` // messages failed by it

	Blocked uint64 `json:"blocked,omitempty"` // messages that failed because the system accepts none for now, by whichever error
}

// A Block is a period in which the system answered but accepted no messages from at least one
// producer. In a fleet each agent has its own.
type Block struct {
	FromNS int64  `json:"from_ns"`
	ToNS   int64  `json:"to_ns"`
	Why    string `json:"why"`            // as stated by the system
	Open   bool   `json:"open,omitempty"` // still blocked at the end of the drain
}

// A BlockedTime is how long messages waited for the client library or for a slot. For a sample of
// the calls, weir knows whether their threads slept.
type BlockedTime struct {
	Unreported bool  `json:"untold,omitempty"`   // the kernel of at least one host does not report thread times
	PublishNS  int64 `json:"publish_ns"`         // goroutines inside the client library while a message waited
	FullNS     int64 `json:"full_ns"`            // goroutines waiting for a slot
	WokenNS    int64 `json:"woken_ns,omitempty"` // of the lateness of all messages measured: goroutines that slept and woke after their pacer had turned to the message
	LookedNS   int64 `json:"looked_ns"`          // total duration of the sampled calls
	BusyNS     int64 `json:"busy_ns"`            // part of it in which the thread ran or waited for a core
}

// A Filled is the backlog when the consumers began to drain it, and when they received it.
type Filled struct {
	Messages uint64 `json:"messages"`       // delivered in the drain
	Held     uint64 `json:"held"`           // confirmed and not delivered when the consumers started, per subscription
	Full     bool   `json:"full,omitempty"` // the system accepted no more before the consumers started
	BeganNS  int64  `json:"began_ns"`       // when the consumers started; 0: they did not
	FirstNS  int64  `json:"first_ns"`       // the first delivery; 0: none
	LastNS   int64  `json:"last_ns"`        // the last delivery
}

// A Cost is the cost of the instrument itself on a host, measured before the run.
type Cost struct {
	CeilingPerS float64 `json:"ceiling_per_s,omitempty"` // messages/s that one pacer handles with a driver that does nothing (noop); absent: not measured
	RecordNS    float64 `json:"record_ns,omitempty"`     // recording everything about one message; absent: not measured
}
