//go:build unix

package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirmq/weir/internal/netpartition"
)

// A server is one running process.
type server struct {
	unit *unit
	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid after done
	end  int64 // likewise: time on the host's monotonic clock, ns

	meant bool // ended by an order; only for the supervisor's goroutine
}

// gone reports whether the process has ended.
func (v *server) gone() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}

// why describes how a server ended, with its last output.
func (v *server) why() string {
	text := "exit code 0"
	if v.err != nil {
		text = v.err.Error()
	}
	if said := logEnd(filepath.Join(v.unit.dir, outputFile)); said != "" {
		text += ": " + said
	}
	return text
}

// mostWhy limits an event's description of a server's end; the log has more.
const mostWhy = 300

// whyShort is a short form of why: output from before a signal killed the server does not explain its
// end.
func (v *server) whyShort() string {
	if exit := (*exec.ExitError)(nil); errors.As(v.err, &exit) && !exit.Exited() {
		return v.err.Error()
	}
	text := v.why()
	if len(text) > mostWhy {
		text = strings.ToValidUTF8(text[:mostWhy], "") + "..."
	}
	return text
}

// Processes returns the names and nodes of the processes that a recipe starts, in start order. apart
// means that each node has its own address.
func Processes(r *Recipe, nodes int, apart bool) []Process {
	var all []Process
	for i := range r.Processes {
		part := &r.Processes[i]
		for _, node := range part.where(nodes, apart) {
			all = append(all, Process{Name: unitName(part, node), Node: node})
		}
	}
	return all
}

// owner returns the user that a process runs as, or nil for weir's own.
func (s *supervisor) owner(u *unit) (*syscall.Credential, error) {
	if u.part.As == "" || !s.host.root {
		return nil, nil
	}
	who, err := user.Lookup(u.part.As)
	if err != nil {
		return nil, fmt.Errorf("%s does not run as root, and this host lacks its user: %w", u.part.Name, err)
	}
	uid, err1 := strconv.ParseUint(who.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(who.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("user %s: %w", u.part.As, err)
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	ids, err := who.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.part.As, err)
	}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(n))
		}
	}
	return c, nil
}

// hand gives a process's folder to the user that the process runs as.
func (s *supervisor) hand(u *unit) error {
	c, err := s.owner(u)
	if err != nil || c == nil {
		return err
	}
	// Otherwise only weir's user can enter the parent folder.
	if err := os.Chmod(s.plan.root, 0o711); err != nil {
		return err
	}
	for below, variable := range map[string]string{s.plan.root: "TMPDIR", u.start[0]: "WEIR_CACHE"} {
		for dir := filepath.Dir(below); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if st, err := os.Stat(dir); err != nil || st.Mode()&0o001 == 0 {
				return fmt.Errorf("%s does not run as root, and the user %s cannot enter %s (set %s to a folder that all users can enter)",
					u.part.Name, u.part.As, dir, variable)
			}
		}
	}
	return filepath.WalkDir(u.dir, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, int(c.Uid), int(c.Gid))
	})
}

// prepared returns a command that is ready to start.
func (s *supervisor) prepared(ctx context.Context, u *unit, args []string) (*exec.Cmd, error) {
	program := args[0]
	if !filepath.IsAbs(program) {
		found, err := s.host.look(program)
		if err != nil {
			return nil, err
		}
		program = found
	}
	cmd := exec.CommandContext(ctx, program, args[1:]...)
	cmd.Dir = u.dir
	c, err := s.owner(u)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), s.installed.Env...)
	if c != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c}
		cmd.Env = append(cmd.Env, "HOME="+u.dir, "USER="+u.part.As, "LOGNAME="+u.part.As)
	}
	cmd.Env = append(cmd.Env, u.env...)
	out, err := os.OpenFile(filepath.Join(u.dir, outputFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = out, out // the caller closes it
	return cmd, nil
}

// launch starts a command in the network namespace and the control group of the process's node.
func (s *supervisor) launch(u *unit, cmd *exec.Cmd) error {
	if s.plan.groups == "" {
		return s.reaper.start(cmd, s.plan.space(u.node))
	}
	group, err := netpartition.Open(s.plan.groups, s.plan.group(u))
	if err != nil {
		return err
	}
	defer func() { _ = group.Close() }()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	beginIn(cmd.SysProcAttr, group)
	return s.reaper.start(cmd, s.plan.space(u.node))
}

// commandPause is the wait before a failed command is retried.
const commandPause = 250 * time.Millisecond

// command runs a command to completion.
func (s *supervisor) command(ctx context.Context, u *unit, c Command) error {
	for {
		cmd, err := s.prepared(ctx, u, c.Run)
		if err != nil {
			return err
		}
		if err = s.launch(u, cmd); err == nil {
			err = cmd.Wait()
		}
		_ = cmd.Stdout.(*os.File).Close()
		if err == nil {
			return nil
		}
		if gone := s.failed(); gone != nil {
			return gone
		}
		if !c.Retry || ctx.Err() != nil {
			said := logEnd(filepath.Join(u.dir, outputFile))
			return fmt.Errorf("%s: %s: %w: %s", u.name, filepath.Base(c.Run[0]), errors.Join(err, ctx.Err()), said)
		}
		select {
		case <-time.After(commandPause):
		case <-ctx.Done():
		}
	}
}

// spawn starts a server. It stays in this process's group, by which the guard finds it on systems
// without subreapers.
func (s *supervisor) spawn(u *unit) error {
	// No context: the end of a server is handled by the supervisor and the guard.
	cmd, err := s.prepared(context.Background(), u, u.start)
	if err != nil {
		return err
	}
	defer func() { _ = cmd.Stdout.(*os.File).Close() }()
	if err := s.launch(u, cmd); err != nil {
		return fmt.Errorf("%s: %w", u.name, err)
	}
	v := &server{unit: u, cmd: cmd, done: make(chan struct{})}
	s.servers = append(s.servers, v)
	go func() {
		v.err = cmd.Wait()
		v.end = hostNow()
		close(v.done)
		select {
		case s.ended <- v:
		default: // buffer full: readers need no further notice
		}
	}()
	return nil
}
