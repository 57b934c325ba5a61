//go:build !race

package needs

// Race reports whether the race detector is on, which makes code some ten times as slow.
const Race = false
