package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/offset"
)

// chronyLimit is how long chronyc is waited for. It answers within milliseconds,
// or gives up by itself after some seconds without a daemon.
const chronyLimit = 10 * time.Second

// Chrony asks the host's chronyd how far the wall clock may be off. It runs
// `chronyc -n -c tracking`, which needs no privilege and changes nothing, and
// blocks until that has answered, for ten seconds at most.
//
// The error wraps exec.ErrNotFound where there is no chronyc, and
// offset.ErrUnsynchronised where chronyd follows no clock. Without a chronyd, or
// with one that may not be asked, it has chronyc's own words.
func Chrony(ctx context.Context) (offset.Tracking, error) {
	ctx, cancel := context.WithTimeout(ctx, chronyLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "chronyc", "-n", "-c", "tracking")
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second // for who inherited its output
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if said := strings.Join(strings.Fields(out.String()), " "); said != "" {
			return offset.Tracking{}, fmt.Errorf("asking chronyc: %w: %.200s", err, said)
		}
		return offset.Tracking{}, fmt.Errorf("asking chronyc: %w", err)
	}
	return offset.ParseTracking(out.String())
}
