//go:build unix

package broker

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
)

// A reaper ends the servers if their supervisor is killed together with its guard and weir, as by
// `pkill -9 weir`.
//
// It uses two mechanisms. On Linux, one thread starts the servers and lives as long as they do, so
// that the kernel kills each server when the supervisor ends. In addition, a shell, whose name does
// not match weir's, waits for EOF on a pipe that only the supervisor holds: it then kills what is left
// of the supervisor's process group, including the servers' own children, and removes their folder.
type reaper struct {
	starts chan func()
	shell  *exec.Cmd
	life   io.WriteCloser
}

// leashScript reads a group, a folder, a control group and a word. On EOF without the word, it kills
// the process group and the control group and removes the folder. The folder is not an argument,
// because pkill could match the script by it.
//
// A live guard sends SIGTERM to its whole tree, which includes the shell; the shell therefore ignores
// SIGTERM and ends only on the supervisor's word.
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

// newReaper returns the reaper for this process and its servers, which keep everything in dir and run
// in the control group groups ("": that of this process). The process must lead its own process group.
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
		runtime.LockOSThread() // never unlocked: the thread ends with the reaper
		for start := range l.starts {
			start()
		}
	}()
	return l, nil
}

// start starts cmd in the network namespace at a path, or in this process's own (""). The kernel kills
// it when this process ends.
func (l *reaper) start(cmd *exec.Cmd, space string) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	l.starts <- func() { started <- inSpace(space, cmd.Start) }
	return <-started
}

// close releases the reaper once no server is left.
func (l *reaper) close() {
	close(l.starts)
	_, _ = io.WriteString(l.life, "done\n")
	_ = l.life.Close()
	_ = l.shell.Wait()
}
