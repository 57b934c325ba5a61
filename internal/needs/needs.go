// Package needs skips tests that cannot or need not run, for one of three reasons: the run is a short one,
// the race detector cannot find more than in other tests, or the host lacks something. Tests skip in no
// other way, so that CI notices each missing check.
package needs

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Absent is the variable with the names of what a CI host lacks, separated by spaces.
const Absent = "WEIR_TESTS_ABSENT"

// Less reports whether a test should do fewer repetitions.
func Less() bool { return testing.Short() || Race }

// Time skips t in a run with -short, as make test does. Such a test uses real time, several
// processes, or much of the processor, so whether it passes in time depends on the host.
func Time(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs time: make test-all runs it")
	}
}

// NoRace skips t under the race detector, because nothing in t runs concurrently, or because other
// tests run the same code concurrently.
func NoRace(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("has nothing for the race detector to find: make test or make test-all runs it")
	}
}

// Host skips t because the host lacks what, a word. In CI, where the variable CI is set, it fails t
// unless [Absent] has the word.
func Host(t testing.TB, what string, reason any) {
	t.Helper()
	if os.Getenv("CI") != "" && !slices.Contains(strings.Fields(os.Getenv(Absent)), what) {
		t.Fatalf("this host lacks %s, and %s does not say so: %v", what, Absent, reason)
	}
	t.Skipf("this host lacks %s: %v", what, reason)
}
