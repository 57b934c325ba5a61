//go:build !linux || !amd64

package clockstep

import (
	"fmt"
	"runtime"
	"time"
)

// set refuses every host but Linux on amd64.
func set(int, time.Duration) error {
	return fmt.Errorf("it needs Linux on amd64, and this is %s on %s", runtime.GOOS, runtime.GOARCH)
}
