// Package cli implements weir's command line: verbs, flags, messages and exit codes. Main is the whole
// program as a function, testable without starting a process.
package cli
