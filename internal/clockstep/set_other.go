//go:build !linux || !amd64

package clockstep

import (
	"fmt"
	"runtime"
	"time"
)

// Set refuses every host but Linux on amd64.
func Set(int, time.Duration) error {
	return fmt.Errorf("%w: it needs Linux on amd64, and this is %s on %s", ErrMissing, runtime.GOOS, runtime.GOARCH)
}
