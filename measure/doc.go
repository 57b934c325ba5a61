// Package measure records what happens in a run: latency histograms, outcomes and rates, recorded
// by many goroutines without locks or allocation, and read as a cumulative snapshot, or interval by
// interval.
//
// It reads no clock, prints nothing and opens no file. All instants are nanoseconds since the run's
// epoch on the run's clock; all latencies are nanoseconds.
package measure
