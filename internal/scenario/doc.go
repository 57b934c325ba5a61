// Package scenario reads what runs shall be: a YAML file of strict shape,
// overridden by variables and flags, completed with defaults and checked
// against what the chosen driver declares. It executes nothing and connects to
// nothing.
//
// Every fault of a file, the variables and the flags is found in one pass and
// reported as "file:line:column: path: what is wrong (what is allowed)", or with
// the name of the flag or variable in place of the position.
//
// Reading is in steps: package tree (YAML to a tree of texts with positions), suite (the
// scenarios of a file, each laid over the rest, and layers: variables and flags
// over that), matrix (one tree for each combination), keys (the one table of keys,
// each with its kind of value, which reads it), combine (what does not go
// together, and defaults that depend on other keys), naming. A Scenario renders
// itself by that table as a file that gives the same run again, with where each
// value came from where that is asked for. The JSON Schema follows from it too.
package scenario
