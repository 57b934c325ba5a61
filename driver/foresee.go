package driver

import "reflect"

// Servers are those of a run, as far as they are known before it.
type Servers struct {
	Nodes    int  // that weir starts; 0: it starts none, and knows nothing of those that are there
	Replicas int  // of each destination that it makes there, 1 or more; 0 where Nodes is
	Requests bool // messages are requests, which replies confirm
}

// A GuaranteePredictor is a Config that tells before a run what decides the meaning of a confirmation.
// weir then refuses a guarantee that the table of the driver's page does not give with that,
// without starting or asking a server. The tag firm of an option names values, joined by commas,
// with which a confirmation may mean more: weir tries these, and says which help.
type GuaranteePredictor interface {
	// Known returns the settings that the table names, as far as they are known. Of servers
	// that weir starts these are also the recipe's; of others only what the client decides,
	// whatever the servers and their destinations are set to. What is left out may be the best
	// there is. It does no I/O.
	Known(Servers) Known
}

// Foresee returns the most that a confirmation guarantees with the settings of cfg. ok: it is
// a GuaranteePredictor.
func (d Definition) Foresee(cfg Config, s Servers) (most Guarantee, ok bool) {
	f, ok := cfg.(GuaranteePredictor)
	if !ok || len(d.Confirmations) == 0 {
		return 0, false
	}
	return d.Confirmations.AtMost(f.Known(s)).Guarantee, true
}

// Clone returns a copy of cfg. To set an option of the copy does not change cfg.
func Clone(cfg Config) Config {
	v := reflect.ValueOf(cfg).Elem()
	c := reflect.New(v.Type())
	c.Elem().Set(v)
	return c.Interface().(Config)
}
