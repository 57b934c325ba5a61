// Package live tells how a run goes while it goes, in words: on a terminal in a
// block of a few lines that is rewritten about once a second, elsewhere in one
// line a second. What happens in the run, and what else is said meanwhile,
// stands above the block and stays.
//
// It reads no clock, changes no setting of the terminal and does not hide the
// cursor, so that a run that is killed leaves a terminal as it was.
package live
