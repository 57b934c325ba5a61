// Package coordinator conducts a run: it lets the parts that do it pass their stages,
// decides for all of them when it is over, adds up what they report, and joins them.
//
// A part is done by engine.Execute. In this process it is reached by calls: Alone is
// every run of one process, Together one by several parts. Over a network package fleet
// brings what its agents say to a Coordinator, and its decisions to them.
//
// A part that is silent for SilentLimit no longer holds the others up, and may come back.
package coordinator
