// Package series executes runs, one after another, by a plan: repeats of scenarios, a search for the
// capacity, or a suite. It takes resolved scenarios, starts the system if they ask for it, has this process
// or a fleet execute each run, judges it, and writes its folder. An interrupted series can be resumed in
// its folder.
//
// It reads no flags, knows no terminal and decides no exit code. An Observer reports on a run in progress,
// an Outcome on a finished one.
package series
