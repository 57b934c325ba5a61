package pace

// A ThreadTime is what a thread did up to an instant, in ns, each from an origin of
// its own: only differences mean something.
type ThreadTime struct {
	At     int64 // the instant, on the clock given
	CPU    int64 // ran
	Queued int64 // could have run, and waited for a core
}

// Since returns what lies between an earlier reading of the same thread and t, and
// slept: the time in which the thread neither ran nor wanted to. It waited for
// something then. What a hypervisor took of the time is in slept too.
func (t ThreadTime) Since(earlier ThreadTime) (d ThreadTime, slept int64) {
	d = ThreadTime{At: t.At - earlier.At, CPU: t.CPU - earlier.CPU, Queued: t.Queued - earlier.Queued}
	return d, max(0, d.At-d.CPU-d.Queued)
}
