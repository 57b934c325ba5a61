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

// Suffixes of names next to a process's folder.
const (
	diskSuffix  = ".disk"  // disk image
	belowSuffix = ".below" // data folder beneath a disk that can be slowed down
)

// below returns the data folder of a process beneath the layer that can slow it down.
func (s *supervisor) below(u *unit) string {
	if s.plan.slow {
		return u.dir + belowSuffix
	}
	return filepath.Join(u.dir, dataFolder)
}

// makeDisk creates the data folder of a process and the disk or layer beneath it.
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

// clearDisk removes what makeDisk created next to the process's folder.
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
		_ = d.End() // the servers are gone, and the folder is removed next
	}
}

// diskPids returns the processes that serve disks.
func (s *supervisor) diskPids() (pids []int) {
	for i := range s.layout.units {
		if d := s.slow[s.layout.units[i].name]; d != nil {
			pids = append(pids, d.Pid())
		}
	}
	return pids
}

// slowDown delays flushes and reads of the servers' disks by the given time; 0 removes the delay.
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

// fill fills the servers' disks.
func (s *supervisor) fill(names []string) error {
	if !s.plan.disks {
		return errors.New("the servers have no disks of their own")
	}
	for _, u := range s.unitsOf(names) {
		if s.full[u] != nil {
			continue // filled by an earlier fault
		}
		x, err := fill(s.below(u))
		if err != nil {
			return err
		}
		s.full[u] = x
	}
	return nil
}

// empty frees the filled disks of servers.
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
