// Package runs does runs: it takes resolved scenarios, starts the system where they
// ask for it, has each run done by this process or by a fleet, judges it, writes its
// folder and returns its result.
//
// It reads no flag, knows no terminal and decides no exit code. Whoever has runs done
// is told of them by an Observer while they go, and by an Outcome when they are over.
package runs
