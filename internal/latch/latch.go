// Package latch works with channels that are closed once to signal an event.
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
