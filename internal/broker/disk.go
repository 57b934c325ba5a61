//go:build unix

package broker

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weirmq/weir/internal/slowdisk"
)

// Ends of names beside a process's folder.
const (
	diskSuffix  = ".disk"  // the image of its disk
	belowSuffix = ".below" // the folder with its data, where those lie on a disk that can be slow
)

// below is the folder with the data of a process, without what can make it slow.
func (s *supervisor) below(u *unit) string {
	if s.plan.slow {
		return u.dir + belowSuffix
	}
	return filepath.Join(u.dir, dataFolder)
}

// makeDisk makes the folder for the data of a process, and what lies between both.
func (s *supervisor) makeDisk(ctx context.Context, u *unit) error {
	data, below := filepath.Join(u.dir, dataFolder), s.below(u)
	for _, dir := range []string{data, below} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if s.plan.disks {
		if err := mountDisk(ctx, s.host, u.dir+diskSuffix, below, diskBytes); err != nil {
			return err
		}
	}
	if !s.plan.slow {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	d, err := slowdisk.Start(self, below, data, func(cmd *exec.Cmd) error { return s.reaper.start(cmd, "") })
	if err == nil {
		s.slow[u.name] = d
	}
	return err
}

// clearDisk removes what makeDisk made beside the folder of the process.
func (s *supervisor) clearDisk(u *unit) error {
	if d := s.slow[u.name]; d != nil {
		delete(s.slow, u.name)
		if err := d.End(); err != nil {
			return err
		}
	}
	if s.plan.disks {
		if err := syscall.Unmount(s.below(u), 0); err != nil {
			return err
		}
		if err := os.Remove(u.dir + diskSuffix); err != nil {
			return err
		}
	}
	if s.plan.slow {
		return os.RemoveAll(s.below(u))
	}
	return nil
}

// endDisks ends the processes that serve disks.
func (s *supervisor) endDisks() {
	for name, d := range s.slow {
		delete(s.slow, name)
		_ = d.End() // the servers are gone, and the folder goes
	}
}

// diskPids are the processes that serve disks.
func (s *supervisor) diskPids() (pids []int) {
	for i := range s.layout.units {
		if d := s.slow[s.layout.units[i].name]; d != nil {
			pids = append(pids, d.Pid())
		}
	}
	return pids
}

// slowDown has the flushes and reads of servers take so much longer; 0: no longer.
func (s *supervisor) slowDown(names []string, by time.Duration) error {
	if !s.plan.slow {
		return errors.New("the servers have no disks that can be slow")
	}
	var errs []error
	for _, u := range s.unitsOf(names) {
		errs = append(errs, s.slow[u.name].Slow(by))
	}
	return errors.Join(errs...)
}

// fill leaves no room on the disks of servers.
func (s *supervisor) fill(names []string) error {
	if !s.plan.disks {
		return errors.New("the servers have no disks of their own")
	}
	for _, u := range s.unitsOf(names) {
		if s.full[u] != nil {
			continue // by a fault before
		}
		x, err := fill(s.below(u))
		if err != nil {
			return err
		}
		s.full[u] = x
	}
	return nil
}

// empty gives the disks of servers their room back.
func (s *supervisor) empty(names []string) error {
	var errs []error
	for _, u := range s.unitsOf(names) {
		if x := s.full[u]; x != nil {
			errs = append(errs, x.empty())
			delete(s.full, u)
		}
	}
	return errors.Join(errs...)
}
