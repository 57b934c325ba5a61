//go:build unix

// Package disturb disturbs a process on purpose, so that a test can see what the process makes of it:
// programs that spin beside it, stops of its threads, and a control group that throttles it.
//
// Nothing outlives the process that disturbs, not even if it is killed: the spinning programs run under
// guards, and the disturbed process must run under a guard too, which continues it, ends it and removes
// its control group.
package disturb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/weirmq/weir/internal/guard"
)

// A Kind is a kind of disturbance.
type Kind string

// The kinds.
const (
	None     Kind = "none"     // nothing on purpose: the host as it is
	Spin     Kind = "spin"     // two programs that spin
	Stop     Kind = "stop"     // SIGSTOP for 20 ms, again and again
	Throttle Kind = "throttle" // a control group that grants less of a core than the process wants
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{None, Spin, Stop, Throttle} }

// What the kinds do.
const (
	spinners = 2
	stopFor  = 20 * time.Millisecond
	period   = 20 * time.Millisecond // of the quota
)

// members is the file with the processes of a control group.
const members = "cgroup.procs"

// Groups are the places where a control group with a quota can be made: of version 2, and of version 1.
// A Spec without groups uses those of Linux.
type Groups struct{ V2, V1 []string }

func hostGroups() Groups {
	return Groups{V2: []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, V1: []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}}
}

// A Spec describes a disturbance.
type Spec struct {
	Kind  Kind
	Every time.Duration // Stop: from one stop to the next
	Cores float64       // Throttle: how much of a core the group may use
}

// A Disturbance can be started once.
type Disturbance struct {
	spec  Spec
	self  string
	group string // of Throttle
}

// New prepares a disturbance. self is weir's own binary, for guards. The error says which right or
// facility the host lacks.
func New(self string, spec Spec) (*Disturbance, error) {
	d := &Disturbance{spec: spec, self: self}
	if spec.Kind != Throttle {
		return d, nil
	}
	group, err := throttled(hostGroups(), spec.Cores)
	d.group = group
	return d, err
}

// Group is the control group that the guard of the disturbed process must remove; "" for none.
func (d *Disturbance) Group() string { return d.group }

// Outside is the control group to which a process below the disturbed one must move if it is not to be
// disturbed; "" for none.
func (d *Disturbance) Outside() string {
	if d.group == "" {
		return ""
	}
	return filepath.Dir(d.group)
}

// Join moves the calling process to a control group; "" is no group.
func Join(group string) error {
	if group == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(group, members), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return fmt.Errorf("moving to a control group: %w", err)
	}
	return nil
}

// Command returns the command that starts args as the disturbed process: in the group from the start, as
// in a container.
func (d *Disturbance) Command(args ...string) []string {
	if d.group == "" {
		return args
	}
	return append([]string{"/bin/sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(d.group, members)}, args...)
}

// Discard removes what New made, if no guard did.
func (d *Disturbance) Discard() {
	if d.group != "" {
		_ = syscall.Rmdir(d.group)
	}
}

// throttled makes a control group with a quota and returns its path.
func throttled(in Groups, cores float64) (string, error) {
	quota := strconv.Itoa(int(cores * float64(period.Microseconds())))
	every := strconv.Itoa(int(period.Microseconds()))
	var errs []error
	try := func(root string, files map[string]string, order ...string) (string, bool) {
		if _, err := os.Stat(filepath.Join(root, members)); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			return "", false
		}
		group := filepath.Join(root, "weir-throttle-"+strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
		err := os.Mkdir(group, 0o755)
		for _, name := range order {
			if err == nil {
				err = os.WriteFile(filepath.Join(group, name), []byte(files[name]), 0o600)
			}
		}
		if err != nil {
			_ = syscall.Rmdir(group)
			errs = append(errs, err)
			return "", false
		}
		return group, true
	}
	for _, root := range in.V2 {
		// Without the controller in subtree_control the group would have no cpu.max.
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+cpu"), 0o600)
		if group, ok := try(root, map[string]string{"cpu.max": quota + " " + every}, "cpu.max"); ok {
			return group, nil
		}
	}
	for _, root := range in.V1 {
		if group, ok := try(root, map[string]string{"cpu.cfs_period_us": every, "cpu.cfs_quota_us": quota}, "cpu.cfs_period_us", "cpu.cfs_quota_us"); ok {
			return group, nil
		}
	}
	if len(errs) == 0 {
		errs = append(errs, errors.New("this host has no control groups"))
	}
	return "", fmt.Errorf("making a control group with a quota: %w", errs[len(errs)-1])
}

// An Effect is what a disturbance did.
type Effect struct {
	Stops     int   `json:"stops,omitempty"`
	StoppedNS int64 `json:"stopped_ns,omitempty"` // all stops together
}

// Start disturbs process pid, which Command started under a guard, until end is called or ctx ends.
func (d *Disturbance) Start(ctx context.Context, pid int) (end func() (Effect, error), err error) {
	switch d.spec.Kind {
	case Spin:
		return d.spin(ctx)
	case Stop:
		return d.stop(ctx, pid)
	}
	return func() (Effect, error) { return Effect{}, nil }, nil
}

func (d *Disturbance) spin(ctx context.Context) (end func() (Effect, error), err error) {
	var running []*guard.Process
	end = func() (Effect, error) {
		var errs []error
		for _, p := range running {
			errs = append(errs, p.Stop(context.WithoutCancel(ctx)))
		}
		return Effect{}, errors.Join(errs...)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	for range spinners {
		p, err := guard.Start(ctx, d.self, guard.Spec{
			Args: []string{"/bin/sh", "-c", "while :; do :; done"}, Dir: "/", Stdout: null, Stderr: null, Grace: 100 * time.Millisecond,
		})
		if err != nil {
			_, ended := end()
			return nil, fmt.Errorf("starting a spinning process: %w", errors.Join(err, ended))
		}
		running = append(running, p)
	}
	return end, nil
}

// stop stops the process again and again. How long each stop was is measured: the host may hold up this
// process too.
func (d *Disturbance) stop(ctx context.Context, pid int) (end func() (Effect, error), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var effect Effect
	var failed error
	all.Go(func() {
		tick := time.NewTicker(d.spec.Every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			began := time.Now()
			if failed = syscall.Kill(pid, syscall.SIGSTOP); failed != nil {
				return
			}
			time.Sleep(stopFor)
			failed = syscall.Kill(pid, syscall.SIGCONT)
			effect.Stops++
			effect.StoppedNS += int64(time.Since(began))
			if failed != nil {
				return
			}
		}
	})
	return func() (Effect, error) {
		cancel()
		all.Wait()
		if errors.Is(failed, syscall.ESRCH) { // it ended
			failed = nil
		}
		return effect, failed
	}, nil
}
