// Package host tells what the machine is and what it did while a run went on:
// its facts (for environment.json), the stalls that a thread of ours met
// (hiccups), what the process used of the processor and what was taken from
// it (steal, throttling, swapping, switches), and Go's garbage collections.
//
// It only reads. Nothing is guessed: what a host does not tell is left out,
// and the reader of a field can see that it is not there. Which readings make
// a run doubtful is not decided here.
package host
