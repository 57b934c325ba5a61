package hosts

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limits of an ssh.
const (
	// Beat is how often an agent gets a line, so that it knows that it is still wanted.
	Beat = 5 * time.Second
	// LostLimit is after how long without one it ends, and after how long of silence ssh gives a host up.
	LostLimit = 30 * time.Second

	endLimit  = 20 * time.Second // for an agent to end after its input
	killLimit = 5 * time.Second  // for other sessions, and for the master
	stepLimit = 30 * time.Second // for a step that sends nothing large
	mostLine  = 64 << 10
	mostSaid  = 4 // last lines of an output that are kept
)

// options of each ssh. Everything else is the user's: keys, config, jump hosts.
var options = []string{
	"-T", "-x", "-a",
	"-o", "BatchMode=yes", // several ask at once: nobody could answer
	"-o", "ConnectTimeout=15",
	"-o", "ServerAliveInterval=" + fmt.Sprint(int(Beat.Seconds())),
	"-o", "ServerAliveCountMax=" + fmt.Sprint(int(LostLimit/Beat)),
	"-o", "ControlPersist=no",
	"-o", "LogLevel=ERROR", // no banner
	"-o", "RemoteCommand=none",
	"-o", "PermitLocalCommand=no",
	"-o", "ForkAfterAuthentication=no",
}

// A session is a process of ssh with a command on a host.
type session struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	outs   []io.Closer
	lines  chan string   // answers, closed at the end of its output
	ended  chan struct{} // closed when the process is gone
	err    error         // of the process; set before ended is closed
	mu     sync.Mutex
	said   []string // the last lines of stderr
	heard  []string // the last lines of stdout that are no answers, such as those of a login shell
	closed bool
}

// A link is what there is to one host.
type link struct {
	Host
	ssh    string // path of ssh
	dir    string // of the sockets
	socket string // in dir

	master, agent *session
	found         found
	path          string // of the program, on the host
	at            string // where its agent joins
	report        Reached
}

// command makes an ssh. Its folder is that of the sockets, whose paths would otherwise be too long for some
// systems.
func (l *link) command(more []string, command ...string) *exec.Cmd {
	args := append(append([]string{}, options...), "-o", "ControlPath="+l.socket)
	args = append(append(args, more...), "--", l.SSH)
	cmd := exec.Command(l.ssh, append(args, command...)...)
	cmd.Dir = l.dir
	// Ctrl-C at a terminal is for weir, which then ends agents in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// start starts a command on the host: by the master, or as the master.
func (l *link) start(master bool, command string) (*session, error) {
	more := []string{"-o", "ControlMaster=no", "-o", "ClearAllForwardings=yes"}
	if master {
		more[1] = "ControlMaster=yes"
	}
	s := &session{cmd: l.command(more, command), lines: make(chan string, 64), ended: make(chan struct{})}
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	s.stdin, s.outs = stdin, []io.Closer{stdout, stderr}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting ssh: %w", err)
	}
	var read sync.WaitGroup
	read.Go(func() {
		defer close(s.lines)
		for text := range lines(stdout) {
			if rest, ours := strings.CutPrefix(text, Answer); ours {
				select {
				case s.lines <- rest:
				default: // no script has so much to say
				}
			} else {
				s.mu.Lock()
				s.heard = last(s.heard, text)
				s.mu.Unlock()
			}
		}
	})
	read.Go(func() {
		for text := range lines(stderr) {
			s.mu.Lock()
			s.said = last(s.said, text)
			s.mu.Unlock()
		}
	})
	go func() {
		read.Wait()
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

// last appends a line, and keeps the last lines.
func last(all []string, text string) []string {
	if all = append(all, text); len(all) > mostSaid {
		return all[1:]
	}
	return all
}

// lines yields lines of bounded length until the end of r.
func lines(r io.Reader) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		scan := bufio.NewScanner(r)
		scan.Buffer(make([]byte, 4<<10), mostLine)
		for scan.Scan() {
			if text := strings.TrimSpace(scan.Text()); text != "" && !yield(text) {
				return
			}
		}
		_, _ = io.Copy(io.Discard, r) // after a line that is too long
	}
}

// answered waits for an answer; "" and an error if the session ends without one, or ctx does.
func (s *session) answered(ctx context.Context) (string, error) {
	select {
	case text, ok := <-s.lines:
		if ok {
			return text, nil
		}
		select {
		case <-s.ended:
			return "", s.why()
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	return "", fmt.Errorf("no answer: %w", context.Cause(ctx))
}

// errSilent stands for a command that failed and printed nothing.
var errSilent = errors.New("it ended without a word")

// why is what the session said last.
func (s *session) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if said := cmp.Or(strings.Join(s.said, "; "), strings.Join(s.heard, "; ")); said != "" {
		return errors.New(said)
	}
	if s.err != nil {
		return s.err
	}
	return errSilent
}

// ending is how the command of a session ended by itself.
func (s *session) ending() error {
	s.mu.Lock()
	text := ""
	if n := len(s.said); n > 0 {
		text = "; it last said: " + s.said[n-1]
	}
	s.mu.Unlock()
	if s.lost() {
		return errors.New("it was killed, or its connection was cut" + text)
	}
	return s.why()
}

// knows reports whether the host's sshd says that the agent has ended: the connection is there, and its session is not.
func (l *link) knows() bool {
	select {
	case <-l.master.ended:
		return false
	default:
	}
	if l.agent.cmd.ProcessState.ExitCode() < 0 { // the ssh here was killed, not the agent there
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), killLimit)
	defer cancel()
	_, err := l.step(ctx, "exit 0")
	return err == nil
}

// lost reports whether the session was cut, or its command killed, which ssh does not tell apart.
func (s *session) lost() bool {
	code := s.cmd.ProcessState.ExitCode()
	return code == 255 || code < 0
}

// end closes the session's input, and waits for its end up to that limit before it kills ssh.
func (s *session) end(limit time.Duration) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.stdin.Close()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-s.ended:
		return
	case <-late.C:
	}
	_ = s.cmd.Process.Kill()
	late.Reset(time.Second)
	select {
	case <-s.ended:
		return
	case <-late.C:
	}
	for _, out := range s.outs { // the master may keep its end of the pipes
		_ = out.Close()
	}
	<-s.ended
}

// step does a command that sends nothing, and returns its answers.
func (l *link) step(ctx context.Context, command string) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit, fmt.Errorf("not within %v", stepLimit))
	defer cancel()
	s, err := l.start(false, command)
	if err != nil {
		return nil, err
	}
	defer s.end(killLimit)
	_ = s.stdin.Close()
	var all []string
	for {
		text, err := s.answered(ctx)
		switch {
		case err == nil:
			all = append(all, text)
		case ctx.Err() != nil:
			return all, err
		case s.err != nil:
			return all, err
		default:
			return all, nil
		}
	}
}

// reach starts the master.
func (l *link) reach(ctx context.Context) (err error) {
	if l.master, err = l.start(true, remote(stay)); err != nil {
		return err
	}
	if _, err = l.master.answered(ctx); err != nil {
		l.master.end(0)
	}
	switch text := fmt.Sprint(err); {
	case err == nil || ctx.Err() != nil:
	case strings.Contains(text, "Host key verification failed"):
		err = fmt.Errorf("%w (check the host's key, then accept it: ssh %s)", err, l.SSH)
	case strings.Contains(text, "Permission denied"):
		err = fmt.Errorf("%w (ssh %s must work without a question: a key, or ssh-agent)", err, l.SSH)
	}
	return err
}

// forward lets the host reach an address of this side, and returns where.
func (l *link) forward(ctx context.Context, to string) (at string, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	cmd := l.command([]string{"-O", "forward", "-R", "127.0.0.1:0:" + to})
	var out, failed strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-ended
		err = ctx.Err()
	}
	port := strings.TrimSpace(out.String())
	if err != nil || port == "" {
		return "", fmt.Errorf("the host does not reach %s, and ssh -R is refused: %s", to, strings.Join(strings.Fields(failed.String()), " "))
	}
	return "127.0.0.1:" + port, nil
}
