// Package coordinator decides for all workers of a run.
//
// A worker is one process's part of the run, which engine.Execute does. Workers in this
// process are reached by calls: Alone is every run of one process, Together one by several
// workers. Workers on agents are reached over a network: package fleet brings what they
// report to a Coordinator, and its decisions to them (Remote).
//
// A remote worker that is silent for SilentLimit no longer holds the others up, and may
// come back.
package coordinator
