package view

import (
	"github.com/weirmq/weir/result"
)

// An origin is the instant from which the time of a run counts wherever people read it, in
// texts and on axes: the end of the warm-up, in ns since the epoch. The instants of files
// are since the epoch.
type origin int64

func originOf(r *result.Result) origin { return origin(r.WindowFrom()) }

// seconds is an instant of a file; the warm-up is below 0.
func (o origin) seconds(ns int64) float64 { return float64(ns-int64(o)) / 1e9 }

// says writes an instant of a file.
func (o origin) says(ns int64) string { return seconded(o.seconds(ns)) }
