//go:build unix

package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"

	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/pace"
)

// eventWord starts a line of the supervisor that holds a ServerEvent.
const eventWord = "event "

// hostNow reads the host's monotonic clock, which all processes share.
func hostNow() int64 { return pace.NewClock().Epoch().MonotonicNS }

// tell prints an event of a server.
func (v *server) tell(stdout io.Writer, ended string) error {
	e := ServerEvent{Process: v.unit.name, Node: v.unit.node, Pid: v.cmd.Process.Pid, Ended: ended, MonotonicNS: hostNow()}
	if ended != "" {
		e.MonotonicNS, e.ByFault = v.end, v.meant
	}
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, eventWord+string(b))
	return err
}

// telling returns the function that receives events: on if set, otherwise one that logs them.
func telling(on func(ServerEvent), log *slog.Logger) func(ServerEvent) {
	if on != nil {
		return on
	}
	return func(e ServerEvent) { log.Warn("a server of the system", "event", e.String()) }
}

// watch reports when a process that launch started ends by itself, unless the process has reported its
// own end. name stands for the whole system.
func (r *Running) watch(name string, supervised bool, tell func(ServerEvent)) {
	<-r.process.Done()
	err := r.process.Err()
	if r.stopping.Load() {
		return
	}
	ended := "exit code 0"
	var exit *guard.ExitError
	switch {
	case errors.As(err, &exit) && exit.Code > signalled:
		ended = "signal: " + syscall.Signal(exit.Code-signalled).String()
	case supervised:
		return // it has reported its end already
	case errors.As(err, &exit):
		ended = fmt.Sprintf("exit code %d", exit.Code)
	case err != nil:
		ended = err.Error()
	}
	tell(ServerEvent{Process: name, Node: 1, Pid: r.process.Pid(), Ended: ended, MonotonicNS: hostNow()})
}

// signalled is the offset of a signal number in the exit code of a killed process.
const signalled = 128
