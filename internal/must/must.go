// Package must ends a test at an error, or where something does not happen.
package must

import "time"

// A TB is a test: a testing.TB, or what stands in for one.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Do ends the test if err is not nil.
func Do(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get takes what a function returned, and gives its value, or ends the test at its error:
//
//	f := must.Get(os.Open(name))(t)
func Get[T any](value T, err error) func(TB) T {
	return func(t TB) T {
		t.Helper()
		Do(t, err)
		return value
	}
}

// Two is Get for functions that return two values and an error.
func Two[A, B any](a A, b B, err error) func(TB) (A, B) {
	return func(t TB) (A, B) {
		t.Helper()
		Do(t, err)
		return a, b
	}
}

// patience bounds every wait.
const patience = time.Minute

// Until waits until something is so, and ends the test if it is not so within a minute.
func Until(t TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
