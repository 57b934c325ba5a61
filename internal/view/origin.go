package view

import (
	"github.com/weirmq/weir/result"
)

// An origin is the zero of the time that people see in a run's texts and axes: the end of the warm-up, in
// ns since the epoch. Times in files are since the epoch.
type origin int64

func originOf(r *result.Result) origin { return origin(r.WindowFrom()) }

// seconds converts a time of a file; the warm-up is negative.
func (o origin) seconds(ns int64) float64 { return float64(ns-int64(o)) / 1e9 }

// says formats a time of a file.
func (o origin) says(ns int64) string { return seconded(o.seconds(ns)) }
