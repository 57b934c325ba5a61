//go:build unix

package broker

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnInstallSaysHowFarItIs: every 10 s, and nothing of a short one.
func TestAnInstallSaysHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, shown := make(chan struct{}), make(chan struct{})
		var lines []string
		go func() { defer close(shown); progress(ended, func(line string) { lines = append(lines, line) }) }()
		time.Sleep(35 * time.Second)
		close(ended)
		<-shown
		if len(lines) != 3 {
			t.Fatalf("%q; want three lines in 35 s", lines)
		}
		if want := regexp.MustCompile(`^installing for 30 s(; the host received \d+\.\d MiB meanwhile)?$`); !want.MatchString(lines[2]) {
			t.Errorf("%q; want %s", lines[2], want)
		}
	})
}
