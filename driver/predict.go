package driver

import "reflect"

// Servers describes the servers of a run, as far as known before it.
type Servers struct {
	Nodes    int  // started by weir; 0: weir starts none, and knows nothing about the existing ones
	Replicas int  // of each destination created there, 1 or more; 0 if Nodes is
	Requests bool // messages are requests, which replies confirm
}

// A GuaranteePredictor is a Config that knows before a run what determines the meaning of a
// confirmation. weir then rejects a guarantee that the table of the driver's page rules out,
// without starting or asking a server. The tag firm of an option names values, separated by commas,
// with which a confirmation may mean more: weir tries them, and suggests those that help.
type GuaranteePredictor interface {
	// Known returns the settings that the table names, as far as known. For servers started by weir
	// they include the recipe's; for others only what the client decides, whatever the settings of
	// the servers and their destinations. A setting left out may have its best value. It does no
	// I/O.
	Known(Servers) Known
}

// PredictGuarantee returns the strongest guarantee possible with the settings of cfg. ok: cfg is a
// GuaranteePredictor.
func (d Definition) PredictGuarantee(cfg Config, s Servers) (most Guarantee, ok bool) {
	f, ok := cfg.(GuaranteePredictor)
	if !ok || len(d.Confirmations) == 0 {
		return 0, false
	}
	return d.Confirmations.AtMost(f.Known(s)).Guarantee, true
}

// Clone returns a copy of cfg. Setting an option of the copy does not change cfg.
func Clone(cfg Config) Config {
	v := reflect.ValueOf(cfg).Elem()
	c := reflect.New(v.Type())
	c.Elem().Set(v)
	return c.Interface().(Config)
}
