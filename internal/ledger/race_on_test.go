//go:build race

package ledger

// raceEnabled says that the race detector is on, under which the long tests are
// ten times as slow: they run over less there.
const raceEnabled = true
