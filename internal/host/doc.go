// Package host describes the machine and what it did during a run: its facts (for environment.json),
// scheduling stalls that a probe thread met (hiccups), what the process used of the processor and what
// was withheld from it (steal, throttling, swapping, context switches), and Go's garbage collections.
//
// The package only reads, and guesses nothing: what a host does not report is left out, so that a
// reader of a field can tell. It does not decide which readings make a run doubtful.
package host
