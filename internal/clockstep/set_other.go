//go:build !linux || !amd64

package clockstep

import (
	"fmt"
	"runtime"
	"time"
)

// set returns an error: only Linux on amd64 is supported.
func set(int, time.Duration) error {
	return fmt.Errorf("it needs Linux on amd64, and this is %s on %s", runtime.GOOS, runtime.GOARCH)
}
