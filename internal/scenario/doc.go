// Package scenario reads run definitions from a strict YAML file, overridden by environment variables
// and flags, completed with defaults and checked against what the chosen driver declares. It executes
// nothing and connects to nothing.
//
// All faults of the file, the variables and the flags are found in one pass and reported as
// "file:line:column: path: what is wrong (what is allowed)", or with the name of the flag or variable
// in place of the position.
//
// Reading has these steps: package tree (YAML to a tree of texts with positions), suite (the scenarios
// of a file, each merged over the common part, and layers: variables and flags over that), matrix (one
// tree for each combination), keys (the single table of keys, with the kind of each value, which
// parses it), combine (invalid combinations, and defaults that depend on other keys), naming. From the
// same table a Scenario renders itself as a file that gives the same run again, on request with the
// origin of each value. The JSON Schema is derived from it too.
package scenario
