// Package scenario reads what a run shall be: a YAML file of strict shape,
// overridden by flags, completed with defaults and checked against what the
// chosen driver declares. It executes nothing and connects to nothing.
//
// Every fault of a file and its flags is found in one pass and reported as
// "file:line:column: path: what is wrong (what is allowed)", or with the flag's
// name in place of the position.
//
// Reading is in four steps, a file each: tree (YAML to a tree of texts with
// positions), keys (which keys exist), read (texts to typed values), resolve
// (defaults, and what does not go together). A Scenario renders itself as a
// file that gives the same run again.
package scenario
