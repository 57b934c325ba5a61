// Package series does runs, one after another, by a plan: repeats of scenarios, a search for
// the capacity, or a suite. It takes resolved scenarios, starts the system where they ask for
// it, has each run done by this process or by a fleet, judges it, and writes its folder. A
// series that was stopped goes on in its folder.
//
// It reads no flag, knows no terminal and decides no exit code. The caller is told of a run by
// an Observer while it goes, and by an Outcome when it is over.
package series
