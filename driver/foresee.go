package driver

import "reflect"

// Servers are those that weir starts for a run, as far as they are known before.
type Servers struct {
	Nodes    int  // 1 or more
	Replicas int  // of each destination, 1 or more
	Requests bool // messages are requests, which replies confirm
}

// A Foreseer is a Config that tells before a run what confirmations will mean on servers
// that weir starts, by the driver's recipe or embedded. weir then refuses what they will
// not give without starting them. The tag firm of an option names values, joined by
// commas, with which a confirmation may mean more: weir tries these, and says which help.
type Foreseer interface {
	// Foresee returns the most that a confirmation guarantees with the settings. What only
	// a running server tells counts as the best that it may be. It does no I/O.
	Foresee(Servers) Guarantee
}

// Clone returns a copy of cfg. To set an option of the copy does not change cfg.
func Clone(cfg Config) Config {
	v := reflect.ValueOf(cfg).Elem()
	c := reflect.New(v.Type())
	c.Elem().Set(v)
	return c.Interface().(Config)
}

// A Ceiling is a Config that tells before a run, of servers that weir did not start, what a
// confirmation guarantees at most. weir then refuses a scenario that demands more, and says
// which options allow it, by their tags firm.
type Ceiling interface {
	// AtMost returns what a confirmation guarantees with the options, on servers with the
	// best settings that they may have. requests: messages are requests, which replies
	// confirm. What only a server tells bounds nothing. It does no I/O.
	AtMost(requests bool) Guarantee
}
