package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/served"
)

func TestMain(m *testing.M) {
	served.Main(Definition())
	goleak.VerifyTestMain(m)
}

// quiet is short: over loopback what should not come would come with the next
// look at the table.
const quiet = 60 * time.Millisecond

// The runs follow one another: each looks for goroutines that are left.
func TestConformance(t *testing.T) {
	t.Run("one node", func(t *testing.T) {
		s := served.Up(t, Definition(), 1)
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: quiet, Options: s.Options, Cut: s.Restart, Stall: stall(s), Expect: 26,
		})
	})
	t.Run("one node, transactions of one message, notifications", func(t *testing.T) {
		s := served.Up(t, Definition(), 1)
		options := map[string][]string{"transaction": {"1"}, "fetch": {"3"}, "notify": {"true"}, "poll-interval": {"1s"}}
		for name, values := range s.Options {
			options[name] = values
		}
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: quiet, Options: options, Cut: s.Restart, Stall: stall(s), Expect: 26,
		})
	})
	t.Run("three nodes", func(t *testing.T) {
		s := served.Up(t, Definition(), 3)
		drivertest.Run(t, Definition(), drivertest.Harness{
			Quiet: quiet, Options: s.Options, Cut: s.Restart, Stall: stall(s), Nodes: 3, Expect: 26,
		})
	})
}

// stall is served.System.Stall for servers that have a process for each connection:
// some that the system began with are gone, and others have come.
func stall(s *served.System) func() (func(), error) {
	return func() (func(), error) {
		pids := append(slices.Clone(s.Pids), children(s.Pids)...)
		resume := func() {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
				resume()
				return nil, fmt.Errorf("stopping process %d: %w", pid, err)
			}
		}
		return resume, nil
	}
}

// children returns those that the processes have now, as /proc has them.
func children(of []int) []int {
	var pids []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		b, err := os.ReadFile(name)
		i := bytes.LastIndexByte(b, ')') // the name, in parentheses, may hold any
		if err != nil || i < 0 {
			continue
		}
		fields := strings.Fields(string(b[i+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil && slices.Contains(of, parent) && !slices.Contains(of, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}
