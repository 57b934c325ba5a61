package pace

// A ThreadTime is what a thread has done up to an instant, in ns. Each field has its own origin:
// only differences are meaningful.
type ThreadTime struct {
	At     int64 // the instant, on the clock given
	CPU    int64 // ran
	Queued int64 // runnable, but waiting for a core
}

// Since returns the difference between t and an earlier reading of the same thread, and slept: the
// time in which the thread neither ran nor was runnable because it waited for something. Time
// stolen by a hypervisor is in slept too.
func (t ThreadTime) Since(earlier ThreadTime) (d ThreadTime, slept int64) {
	d = ThreadTime{At: t.At - earlier.At, CPU: t.CPU - earlier.CPU, Queued: t.Queued - earlier.Queued}
	return d, max(0, d.At-d.CPU-d.Queued)
}
