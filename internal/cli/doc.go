// Package cli is weir's command line: verbs and flags, words and exit codes. Main is
// the whole program as a function, so that it is tested without starting a process.
package cli
