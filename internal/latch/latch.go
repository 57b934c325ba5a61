// Package latch is about channels that carry nothing and are closed once, to say that
// something has happened.
package latch

// Closed reports, without waiting, whether c is closed. A nil channel is open.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
