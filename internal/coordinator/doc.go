// Package coordinator decides for all workers of a run.
//
// A worker is one process's part of the run, which engine.Execute executes. Workers in this process
// are called directly: Alone is a run in one process, Together one by several workers. Workers on
// agents are reached over a network: package fleet passes their reports to a Coordinator, and its
// decisions to them (Remote).
//
// A remote worker that is silent for SilentLimit no longer blocks the others, and may come back.
package coordinator
