package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/view/layout"
)

// Limits of starting runs.
const (
	mostScenario = 256 << 10        // bytes of a form
	mostOutput   = 64 << 10         // tail of a run's output
	longestCheck = 30 * time.Second // of a scenario
	longestStop  = 30 * time.Second // for a run to write its results
)

// A Starter starts runs of weir, one at a time, since two would disturb each other.
type Starter struct {
	// Command returns weir run with these arguments, reading the scenario from standard input. The end of
	// ctx kills it.
	Command func(ctx context.Context, args ...string) *exec.Cmd

	mu    sync.Mutex
	going *started // current run; nil: none
	last  *started // last finished run; nil: none
	all   sync.WaitGroup
}

// NewStarter returns a Starter that runs the program self in a folder, as a separate process so that the
// server does not disturb the run.
func NewStarter(self, dir string, environ []string) *Starter {
	return &Starter{Command: func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, self, append([]string{"run"}, args...)...)
		cmd.Dir, cmd.Env = dir, environ
		// Ctrl-C goes to the server alone, which passes it on once: twice ends a run at once.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd
	}}
}

// A started run is one that a form started.
type started struct {
	Folder string
	Began  time.Time
	cmd    *exec.Cmd
	said   *ending
	failed error // nil: it exited with 0, or is running
}

// An ending keeps the last bytes written to it.
type ending struct {
	mu sync.Mutex
	b  []byte
}

func (e *ending) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.b = append(e.b, b...)
	if n := len(e.b) - mostOutput; n > 0 {
		e.b = append(e.b[:0], e.b[n:]...)
	}
	return len(b), nil
}

func (e *ending) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(e.b)
}

// interrupted is the exit code of a run that was stopped.
const interrupted = 130

// folderNamed matches the names of folders that a form may create.
var folderNamed = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$`)

// A startView is the page with the form.
type startView struct {
	Scenario, Folder string
	Explained        string // weir's explanation of the scenario; "": not requested
	Wrong            []string
	Going            *started
	Runs             []rowView // of the current or last run
	Last             *started
	Ended            string // how the last run ended
	Said             string // its last output
}

// example is the form's initial scenario.
const example = `weir: 1
name: first
system:
  driver: chan
load:
  rate: 1000/s
warmup: 2s
measure: 20s
`

// startForm is the page with the form.
func (s *Server) startForm(r *http.Request) (answer, error) {
	return s.startPage(r.Context(), startView{Scenario: example, Folder: time.Now().UTC().Format("20060102-150405")})
}

func (s *Server) startPage(ctx context.Context, v startView) (answer, error) {
	st := s.o.Starter
	st.mu.Lock()
	v.Going, v.Last = st.going, st.last
	st.mu.Unlock()
	of := v.Going
	if of == nil && v.Last != nil {
		of = v.Last
		v.Ended = "with exit code 0"
		if exit := (*exec.ExitError)(nil); errors.As(of.failed, &exit) && exit.ExitCode() >= 0 {
			v.Ended = fmt.Sprintf("with exit code %d", exit.ExitCode())
			if exit.ExitCode() == interrupted {
				v.Ended = "early: it was stopped"
			}
		} else if of.failed != nil {
			v.Ended = "by " + of.failed.Error()
		}
	}
	if of != nil {
		if _, _, err := s.look.fresh(ctx); err != nil {
			return answer{}, s.unrooted(err)
		}
		l, err := s.o.Index.List(ctx, index.Query{Below: of.Folder, Sort: "oldest", Most: perPage})
		if err != nil {
			return answer{}, err
		}
		for _, row := range l.Rows {
			v.Runs = append(v.Runs, viewOf(row))
		}
		v.Said = readable(of.said.String())
	}
	return s.frame(frame{Title: "Start a run", Start: &v})
}

// readable makes a program's output safe to show, line by line.
func readable(s string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.ToValidUTF8(s, "�")) {
		b.WriteString(layout.Printable(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}

// start handles the form.
func (s *Server) start(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostScenario)
	if err := r.ParseForm(); err != nil {
		http.Error(w, fmt.Sprintf("weir serve: the form cannot be read: %v (at most %d KiB)", err, mostScenario>>10), http.StatusBadRequest)
		return
	}
	v := startView{Scenario: strings.ReplaceAll(r.PostForm.Get("scenario"), "\r\n", "\n"), Folder: r.PostForm.Get("folder")}
	explained, err := s.o.Starter.check(r.Context(), v.Scenario)
	if err == nil && r.PostForm.Get("do") == "start" {
		err = s.o.Starter.begin(s.o.Index.Dir(), v.Folder, v.Scenario)
		if err == nil {
			http.Redirect(w, r, "/live?"+url.Values{"dir": {v.Folder}}.Encode(), http.StatusSeeOther)
			return
		}
	}
	if err != nil {
		v.Wrong = lines(err)
	} else {
		v.Explained = readable(explained)
	}
	s.page(func(r *http.Request) (answer, error) { return s.startPage(r.Context(), v) })(w, r)
}

// stop asks the current run to end.
func (s *Server) stop(w http.ResponseWriter, r *http.Request) {
	s.o.Starter.interrupt()
	http.Redirect(w, r, "/start", http.StatusSeeOther)
}

// folder is that of the current run; "": none.
func (st *Starter) folder() string {
	if st == nil {
		return ""
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.going == nil {
		return ""
	}
	return st.going.Folder
}

// said is the latest output of the current run.
func (st *Starter) said() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.going == nil {
		return ""
	}
	return readable(st.going.said.String())
}

// check has weir explain a scenario, without running it.
func (st *Starter) check(ctx context.Context, scenario string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longestCheck)
	defer cancel()
	cmd := st.Command(ctx, "-", "--explain")
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(scenario), &out, &said
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			return "", errors.New(readable(text))
		}
		return "", fmt.Errorf("checking the scenario: %w", err)
	}
	return out.String(), nil
}

// Errors of begin.
var (
	errBusy   = errors.New("a run is in progress already (one at a time: two would disturb each other)")
	errFolder = errors.New("is not a name for a new folder (letters, digits, - and _, at most 80)")
)

// begin starts a run with its results in a new folder below dir.
func (st *Starter) begin(dir, folder, scenario string) error {
	if !folderNamed.MatchString(folder) {
		return fmt.Errorf("folder: %q %w", folder, errFolder)
	}
	out := filepath.Join(dir, folder)
	if _, err := os.Lstat(out); err == nil {
		return fmt.Errorf("folder: %s exists (a new name)", folder)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.going != nil {
		return errBusy
	}
	// Not the request's context, which ends at once: Close ends the run.
	cmd := st.Command(context.Background(), "-", "--out", out, "--no-color")
	x := &started{Folder: folder, Began: time.Now().UTC(), cmd: cmd, said: new(ending)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(scenario), io.Writer(x.said), x.said
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting weir: %w", err)
	}
	st.going = x
	st.all.Go(func() {
		err := cmd.Wait()
		st.mu.Lock()
		defer st.mu.Unlock()
		x.failed, st.going, st.last = err, nil, x
	})
	return nil
}

// interrupt asks the current run to end, and to write its results.
func (st *Starter) interrupt() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.going != nil {
		_ = st.going.cmd.Process.Signal(os.Interrupt) // it may have ended already
	}
}

// Close ends the current run, with some time to write its results.
func (st *Starter) Close() {
	st.interrupt()
	ended := make(chan struct{})
	go func() { st.all.Wait(); close(ended) }()
	t := time.NewTimer(longestStop)
	defer t.Stop()
	select {
	case <-ended:
		return
	case <-t.C:
	}
	st.mu.Lock()
	if st.going != nil {
		_ = st.going.cmd.Process.Kill() // likewise
	}
	st.mu.Unlock()
	<-ended
}
