// Package measure counts what happens in a run: latency histograms, outcomes
// and rates, recorded by many goroutines without locks or allocation, and read
// as a cumulative snapshot, or interval by interval.
//
// Nothing here reads a clock, prints or opens a file. All instants are
// nanoseconds since the run's epoch on the one clock of the run; all latencies
// are nanoseconds.
package measure
