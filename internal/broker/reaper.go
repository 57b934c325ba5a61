//go:build unix

package broker

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
)

// A reaper ties servers to the life of their supervisor, should that be killed
// together with its guard and with weir, as `pkill -9 weir` does.
//
// Two things hold. The servers are started by one thread that stays as long as
// they do, so that the kernel kills each of them when the supervisor ends (Linux).
// And a shell, which no name of weir's finds, waits for the end of a pipe that only
// the supervisor has: it kills what is left of the supervisor's process group, the
// servers' own children among it, and removes their folder.
type reaper struct {
	starts chan func()
	shell  *exec.Cmd
	life   io.WriteCloser
}

// leashScript reads a group, a folder, a control group and a word. Without the word it is the end
// of all that is in the one and of the other. The folder is not an argument, because
// its name would be found by it.
//
// A guard that lives asks its whole tree to end, by SIGTERM: the shell is of it, and
// ends with the supervisor's word, not before.
const leashScript = `trap '' TERM INT HUP
read -r group && read -r folder && read -r groups || exit 0
read -r word
[ "$word" = done ] && exit 0
for i in 1 2 3 4 5 6 7 8 9 10; do
	kill -s KILL -- "-$group" 2>/dev/null || break
	sleep 0.1
done
umount -l "$folder"/*/data 2>/dev/null
umount -l "$folder"/*.below 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do
	[ -n "$groups" ] && [ -e "$groups" ] || break
	rmdir "$groups"/*/ "$groups" 2>/dev/null || sleep 0.1
done
for i in 1 2 3 4 5 6 7 8 9 10; do
	rm -rf -- "$folder" 2>/dev/null && [ ! -e "$folder" ] && exit 0
	sleep 0.2
done
`

// newReaper returns the reaper of this process and of the servers that keep everything in
// dir and are in the control group groups, "": in that of this process. The process has a group
// of its own.
func newReaper(dir, groups string) (*reaper, error) {
	l := &reaper{starts: make(chan func()), shell: exec.Command("/bin/sh", "-c", leashScript)}
	l.shell.Dir = "/"
	l.shell.Env = []string{"PATH=/usr/bin:/bin"}
	l.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if l.life, err = l.shell.StdinPipe(); err != nil {
		return nil, fmt.Errorf("tying the servers to their supervisor: %w", err)
	}
	if err := l.shell.Start(); err != nil {
		return nil, fmt.Errorf("tying the servers to their supervisor: %w", err)
	}
	if _, err := fmt.Fprintf(l.life, "%d\n%s\n%s\n", syscall.Getpgrp(), dir, groups); err != nil {
		return nil, fmt.Errorf("tying the servers to their supervisor: %w", err)
	}
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the reaper
		for start := range l.starts {
			start()
		}
	}()
	return l, nil
}

// start starts cmd in the network namespace at a path, or where this process is (""). The
// kernel kills it when this process ends.
func (l *reaper) start(cmd *exec.Cmd, space string) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	l.starts <- func() { started <- inSpace(space, cmd.Start) }
	return <-started
}

// close lets go: no server is left.
func (l *reaper) close() {
	close(l.starts)
	_, _ = io.WriteString(l.life, "done\n")
	_ = l.life.Close()
	_ = l.shell.Wait()
}
