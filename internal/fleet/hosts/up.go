package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/flock"
)

// atOnce is with how many hosts weir works at the same time.
const atOnce = 32

// Options say how to bring agents to hosts.
type Options struct {
	File   *File
	SSH    string // path of ssh
	Dir    string // private folder for sockets, the caller's
	Listen string // where coordinators listen on this host
	Reach  string // the same as hosts reach it
	// Join makes the URL by which agents join at an address. It is a secret.
	Join func(at string) string
	// Note reports a step of a host, and Lost that an agent ended by itself. Both are called by several goroutines.
	Note func(host, text string)
	Lost func(host string, why error)
}

// A Reached says how one host is.
type Reached struct {
	Name      string `json:"name"`                // of its agent
	SSH       string `json:"ssh"`                 // destination
	Platform  string `json:"platform"`            // as Go names it
	Program   string `json:"program"`             // path there
	SentB     int64  `json:"sent_b"`              // bytes that were sent for the program; 0: it was there
	Forwarded bool   `json:"forwarded,omitempty"` // it reaches this side by ssh -R
	Ended     string `json:"ended,omitempty"`     // why its agent ended by itself; "": it runs
}

// Agents are the agents on the hosts of a file.
type Agents struct {
	o     Options
	links []*link
	stop  chan struct{} // closed when the beats end
	beats sync.WaitGroup
}

// ErrFile says that the file does not fit the hosts.
var ErrFile = errors.New("the hosts are not as the file says")

// Up starts an agent on each host, and returns when all run. When one cannot, or ctx ends, no agent is
// left; the error then names each host that failed.
func Up(ctx context.Context, o Options) (*Agents, error) {
	a := &Agents{o: o, stop: make(chan struct{})}
	for i, h := range o.File.Hosts {
		a.links = append(a.links, &link{Host: h, ssh: o.SSH, dir: o.Dir, socket: strconv.Itoa(i), report: Reached{Name: h.Name, SSH: h.SSH}})
	}
	err := a.up(ctx)
	if err != nil {
		return nil, errors.Join(err, a.Down())
	}
	return a, nil
}

// Reached returns how the hosts are.
func (a *Agents) Reached() (all []Reached) {
	for _, l := range a.links {
		all = append(all, l.report)
	}
	return all
}

// each does a step on all hosts, and joins their errors.
func (a *Agents) each(ctx context.Context, doing string, do func(*link) error) error {
	errs := make([]error, len(a.links))
	room := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, l := range a.links {
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			if err := do(l); err != nil {
				errs[i] = fmt.Errorf("%s (%s): %s: %w", l.Name, l.SSH, doing, err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx) // what failed by it is no news
	}
	return errors.Join(errs...)
}

// up does the steps. Each is done on all hosts before the next: nothing is written to a host before all are
// reached and known.
func (a *Agents) up(ctx context.Context) error {
	note := func(l *link, begun time.Time, format string, args ...any) {
		a.o.Note(l.Name, fmt.Sprintf(format, args...)+fmt.Sprintf(" (%.1f s)", time.Since(begun).Seconds()))
	}
	end, err := a.answer()
	if err != nil {
		return err
	}
	defer end()
	begun := time.Now()
	if err := a.each(ctx, "reaching it", func(l *link) error {
		if err := l.reach(ctx); err != nil {
			return err
		}
		note(l, begun, "reached")
		return nil
	}); err != nil {
		return err
	}
	if err := a.each(ctx, "looking for a folder for the program", func(l *link) (err error) {
		l.found, err = l.find(ctx)
		return err
	}); err != nil {
		return err
	}
	binaries, err := a.binaries()
	if err != nil {
		return err
	}
	begun = time.Now()
	if err := a.each(ctx, "sending the program", func(l *link) error {
		b := binaries[l.found.platform]
		sent, err := l.send(ctx, b)
		if err != nil {
			return err
		}
		l.report.Platform, l.report.Program, l.report.SentB = l.found.platform, l.path, sent
		if sent == 0 {
			note(l, begun, "%s, the program is there", l.found.platform)
		} else {
			note(l, begun, "%s, program sent: %.1f MiB, %.1f MiB there", l.found.platform, float64(sent)/(1<<20), float64(b.size)/(1<<20))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := a.meet(ctx); err != nil {
		return err
	}
	end()
	begun = time.Now()
	return a.each(ctx, "starting its agent", func(l *link) error {
		if err := a.agent(ctx, l); err != nil {
			return err
		}
		by := ""
		if l.report.Forwarded {
			by = ", which joins through ssh"
		}
		note(l, begun, "agent started%s", by)
		return nil
	})
}

// A found is what a host says of itself.
type found struct {
	platform, folder string
	gzip             bool
}

// find asks a host for its platform, and for a folder for programs.
func (l *link) find(ctx context.Context) (f found, err error) {
	answers, err := l.step(ctx, remote(place, l.Folder))
	var no []string
	for _, text := range answers {
		switch word, rest, _ := strings.Cut(text, " "); word {
		case "platform":
			f.platform = platformOf(rest)
		case "gzip":
			f.gzip = true
		case "folder":
			f.folder = rest
		case "no":
			no = append(no, rest)
		}
	}
	switch {
	case f.folder != "":
		return f, nil
	case len(no) > 0:
		return f, fmt.Errorf("%s (folder: names another, which must exist there)", strings.Join(no, "; "))
	case err == nil:
		err = errors.New("it has no home folder (folder: names one, which must exist there)")
	}
	return f, err
}

// platformOf is what uname -s and uname -m print, as Go names it.
func platformOf(uname string) string {
	system, machine, _ := strings.Cut(strings.ToLower(uname), " ")
	if other, ok := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine]; ok {
		machine = other
	}
	return system + "/" + machine
}

// binaries reads the programs of all platforms that there are among the hosts.
func (a *Agents) binaries() (map[string]*binary, error) {
	all := map[string]*binary{}
	var errs []error
	for _, l := range a.links {
		p := l.found.platform
		path := a.o.File.program(p)
		switch {
		case l.platform != "" && l.platform != p:
			errs = append(errs, fmt.Errorf("%s (%s): %w: it is %s, not %s", l.Name, l.SSH, ErrFile, p, l.platform))
		case path == "":
			errs = append(errs, fmt.Errorf("%s (%s): %w: it is %s, and there is no program for that (a line in programs, such as linux/arm64: ./weir)", l.Name, l.SSH, ErrFile, p))
		case all[p] == nil:
			b, err := newBinary(path)
			if err != nil {
				return nil, err
			}
			all[p] = b
		}
	}
	return all, errors.Join(errs...)
}

// send brings the program to the host, unless it is there. It returns how many bytes it sent.
func (l *link) send(ctx context.Context, b *binary) (sent int64, err error) {
	how := "plain"
	if l.found.gzip {
		how = "gzip"
	}
	l.path = l.found.folder + "/weir-programs/" + b.sha256 + "/weir"
	s, err := l.start(false, remote(put, l.found.folder, b.sha256, b.crc, how))
	if err != nil {
		return 0, err
	}
	defer s.end(killLimit)
	defer context.AfterFunc(ctx, func() { _ = s.stdin.Close() })() // the script then removes what it has
	text, err := s.answered(ctx)
	if err != nil || text == "have" {
		return 0, err
	}
	if l.found.gzip {
		packed, err := b.packed()
		if err != nil {
			return 0, err
		}
		sent = int64(len(packed))
		_, _ = bytes.NewReader(packed).WriteTo(s.stdin) // the script says why it fails
	} else {
		sent = b.size
		_ = b.read(s.stdin)
	}
	_ = s.stdin.Close()
	text, err = s.answered(ctx)
	if err == nil && text != "have" {
		err = fmt.Errorf("it answers %q", text)
	}
	return sent, err
}

// meet finds how each host reaches this one: as it is, or through ssh.
func (a *Agents) meet(ctx context.Context) error {
	host, port, err := net.SplitHostPort(a.o.Listen)
	if err != nil {
		return err
	}
	local := a.o.Listen
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		local = net.JoinHostPort("127.0.0.1", port)
	}
	return a.each(ctx, "looking for a way back", func(l *link) error {
		l.at = a.o.Reach
		answers, err := l.step(ctx, program(l.path, "internal", "dial", a.o.Reach))
		if err != nil {
			return fmt.Errorf("the program does not run there: %w", err)
		}
		if slices.Contains(answers, "open") && !admission.OnLoopback(a.o.Reach) {
			return nil
		}
		l.at, err = l.forward(ctx, local)
		l.report.Forwarded = true
		return err
	})
}

// answer accepts connections where agents will join until end is called, so that something answers while hosts try to reach
// it. A coordinator may answer there already.
func (a *Agents) answer() (end func(), err error) {
	listener, err := net.Listen("tcp", a.o.Listen)
	var why *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return func() {}, nil
	case errors.As(err, &why):
		return nil, fmt.Errorf("%w: listen: %s: %w (an address of this machine)", ErrFile, a.o.Listen, why.Err)
	case err != nil:
		return nil, fmt.Errorf("%w: listen: %w", ErrFile, err)
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return func() { _ = listener.Close() }, nil
}

// agent starts the agent of a host, and keeps it.
func (a *Agents) agent(ctx context.Context, l *link) error {
	s, err := l.start(false, program(l.path, append([]string{"agent", "--join", "-"}, l.args...)...))
	if err != nil {
		return err
	}
	l.agent = s
	if _, err := fmt.Fprintln(s.stdin, a.o.Join(l.at)); err != nil {
		return s.why()
	}
	within, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	if _, err := s.answered(within); err != nil {
		return err
	}
	a.beats.Go(func() {
		tick := time.NewTicker(Beat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = fmt.Fprintln(s.stdin)
			case <-s.ended:
				s.mu.Lock()
				closed := s.closed
				s.mu.Unlock()
				if !closed && a.o.Lost != nil {
					a.o.Lost(l.Name, s.ending())
				}
				return
			case <-a.stop:
				return
			}
		}
	})
	return nil
}

// Down ends the agents and the connections. Its error names the hosts on which an agent may still be
// running: it then ends by itself after LostLimit.
func (a *Agents) Down() error {
	err := a.each(context.Background(), "ending its agent", func(l *link) error {
		l.agent.end(endLimit)
		unsure := l.agent != nil && l.agent.lost() && !l.knows()
		l.master.end(killLimit)
		if unsure {
			return fmt.Errorf("the connection was lost: if it still runs, it ends within %v", LostLimit)
		}
		return nil
	})
	close(a.stop)
	a.beats.Wait()
	return err
}

// Purge removes the programs that weir left on the hosts of a file.
func Purge(ctx context.Context, o Options) error {
	a := &Agents{o: o, stop: make(chan struct{})}
	for i, h := range o.File.Hosts {
		a.links = append(a.links, &link{Host: h, ssh: o.SSH, dir: o.Dir, socket: strconv.Itoa(i)})
	}
	err := a.each(ctx, "removing the programs", func(l *link) error {
		if err := l.reach(ctx); err != nil {
			return err
		}
		_, err := l.step(ctx, remote(purge, l.Folder))
		return err
	})
	return errors.Join(err, a.Down())
}

// Lock is the file in a folder of NewDir that is locked while its process lives.
const Lock = "lock"

// NewDir makes a folder for sockets in the private folder below, and removes those of processes that were
// killed.
func NewDir(ctx context.Context, below string) (dir string, remove func(), err error) {
	all, err := flock.Wait(ctx, filepath.Join(below, "ssh.lock"), nil) // held only briefly
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = all.Close() }()
	old, err := filepath.Glob(filepath.Join(below, "ssh-*"))
	if err != nil {
		return "", nil, err
	}
	for _, dir := range old {
		if held, err := flock.Try(filepath.Join(dir, Lock)); err == nil {
			_ = os.RemoveAll(dir)
			_ = held.Close()
		}
	}
	if dir, err = os.MkdirTemp(below, "ssh-"); err != nil { // mode 0700
		return "", nil, err
	}
	held, err := flock.Try(filepath.Join(dir, Lock))
	if err != nil {
		return "", nil, err
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		_ = held.Close()
	}, nil
}
