package drivertest

import (
	"fmt"
	"runtime"
	"sync"
)

// A recorder collects the findings of a check, independently of package testing, so that the suite
// can inspect failures: a waived check must have some, a broken driver exactly those of its check.
type recorder struct {
	mu       sync.Mutex
	rule     string
	failures []string
	cleanups []func()
}

// do runs f to its end, or to its first fatal failure, and then its cleanups, last first.
func (r *recorder) do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for len(r.cleanups) > 0 {
				last := len(r.cleanups) - 1
				c := r.cleanups[last]
				r.cleanups = r.cleanups[:last]
				c()
			}
		}()
		f()
	}()
	<-done
}

// under sets the sentence of the contract with which failures begin from now on.
func (r *recorder) under(rule string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rule = rule
}

// errorf records a failure; the check continues. Any goroutine may call it.
func (r *recorder) errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, r.rule+": "+fmt.Sprintf(format, args...))
}

// fatalf records a failure and ends the check. Only the check's own goroutine
// may call it, and no cleanup.
func (r *recorder) fatalf(format string, args ...any) {
	r.errorf(format, args...)
	runtime.Goexit()
}

// cleanup runs f when the check has ended. f must report nothing: what it finds is another check's
// concern.
func (r *recorder) cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// adopt adds failures that another recorder has collected.
func (r *recorder) adopt(failures []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, failures...)
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures
}
