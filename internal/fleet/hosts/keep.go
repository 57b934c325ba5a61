package hosts

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirmq/weir/internal/flock"
	"github.com/weirmq/weir/internal/userfile"
)

// A Kept is a fleet that stays up until Down: its connections belong to a process of its own, the keeper.
type Kept struct {
	Schema string    `json:"schema"`
	File   string    `json:"file"`
	Listen string    `json:"listen"`
	Keeper int       `json:"keeper"` // its process
	Since  time.Time `json:"since"`
	Hosts  []Reached `json:"hosts"`
	Unsure string    `json:"unsure,omitempty"` // after its end: hosts on which an agent may still be running
}

const schemaKept = "weir.fleet-hosts/v1"

// Files in the folder of a user's fleets. There is one fleet at a time.
const (
	fileKept = "hosts.json"
	fileHeld = "hosts.lock" // locked by the keeper
	keepWord = "keep"
	poll     = 50 * time.Millisecond
	// downLimit is how long a keeper may take: an agent, then its connection, are ended or killed.
	downLimit = endLimit + killLimit + 10*time.Second
)

// Errors of a fleet that is kept.
var (
	ErrUp = errors.New("a fleet is up already (weir fleet status; weir fleet down)")
	// ErrDown says that no fleet is up.
	ErrDown = errors.New("no fleet is up")
)

// A message is a line from a keeper to the process that started it.
type message struct {
	Host  string `json:"host,omitempty"`
	Note  string `json:"note,omitempty"`
	Error string `json:"error,omitempty"`
	File  bool   `json:"file,omitempty"` // the error is ErrFile
	Up    *Kept  `json:"up,omitempty"`
}

func (m message) write(w io.Writer) error {
	b, err := json.Marshal(m)
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", b)
	}
	return err
}

// Fail reports why a keeper ends.
func Fail(stdout io.Writer, err error) {
	_ = message{Error: err.Error(), File: errors.Is(err, ErrFile) || errors.Is(err, ErrUp)}.write(stdout) // nobody may be reading
}

// Start starts a keeper, whose arguments follow weir's hidden word for it, and returns when the fleet is up. The
// fleet is permanent only after stay; if this process ends before, or calls leave, nothing is left of it.
func Start(ctx context.Context, self string, args []string, note func(host, text string)) (k *Kept, stay, leave func() error, err error) {
	cmd := exec.Command(self, args...)
	cmd.Dir = "/" // so that it keeps no folder busy
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	out, w, err := os.Pipe() // not StdoutPipe: the keeper outlives Wait
	if err != nil {
		return nil, nil, nil, err
	}
	cmd.Stdout = w
	if err := errors.Join(cmd.Start(), w.Close()); err != nil {
		return nil, nil, nil, errors.Join(err, out.Close())
	}
	leave = func() error {
		_ = stdin.Close()
		_ = cmd.Wait()
		return out.Close()
	}
	defer context.AfterFunc(ctx, func() { _ = stdin.Close() })() // then the keeper ends all
	err = errors.New("the keeper of the fleet ended without a word")
	for text := range lines(out) {
		var m message
		if json.Unmarshal([]byte(text), &m) != nil {
			continue
		}
		switch {
		case m.Up != nil:
			stay = func() error {
				_, err := io.WriteString(stdin, keepWord+"\n")
				return errors.Join(err, out.Close())
			}
			return m.Up, stay, leave, nil
		case m.Error != "":
			if err = errors.New(m.Error); m.File {
				err = &fileError{m.Error}
			}
		default:
			note(m.Host, m.Note)
		}
	}
	_ = leave()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return nil, nil, nil, err
}

// A fileError is an ErrFile from another process.
type fileError struct{ text string }

func (e *fileError) Error() string    { return e.text }
func (e *fileError) Is(to error) bool { return to == ErrFile }

// Keep is the keeper: it brings agents up, tells so on stdout, and stays if it then reads keepWord on stdin. SIGTERM
// ends the fleet. dir is the folder of the user's fleets, file the path of the hosts.yaml.
func Keep(ctx context.Context, dir, file string, o Options, stdin io.Reader, stdout io.Writer) (err error) {
	var mu sync.Mutex // of stdout, and of the kept state
	tell := func(m message) error { return m.write(stdout) }
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGHUP) // its terminal and its pipe may end
	held, err := flock.Try(filepath.Join(dir, fileHeld))
	if errors.Is(err, flock.ErrHeld) {
		return ErrUp
	}
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	go func() {
		if line, _ := bufio.NewReader(stdin).ReadString('\n'); strings.TrimSpace(line) != keepWord {
			abort()
		}
	}()
	k := &Kept{Schema: schemaKept, File: file, Listen: o.Listen, Keeper: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second)}
	write := func() error {
		b, err := json.MarshalIndent(k, "", "  ")
		if err != nil {
			return err
		}
		part := filepath.Join(dir, fileKept+".part")
		if err := os.WriteFile(part, append(b, '\n'), 0o600); err != nil {
			return err
		}
		return os.Rename(part, filepath.Join(dir, fileKept))
	}
	o.Note = func(host, text string) {
		mu.Lock()
		defer mu.Unlock()
		if tell(message{Host: host, Note: text}) != nil {
			abort() // nobody waits
		}
	}
	ended := map[string]string{}
	o.Lost = func(host string, why error) {
		mu.Lock()
		defer mu.Unlock()
		ended[host] = why.Error()
		for i := range k.Hosts {
			if k.Hosts[i].Name == host {
				k.Hosts[i].Ended = why.Error()
			}
		}
		if len(k.Hosts) > 0 {
			_ = write() // status then does not show it
		}
	}
	a, err := Up(ctx, o)
	if err != nil {
		return err
	}
	mu.Lock()
	k.Hosts = a.Reached()
	for i, h := range k.Hosts {
		k.Hosts[i].Ended = ended[h.Name]
	}
	err = errors.Join(write(), tell(message{Up: k}))
	mu.Unlock()
	if err != nil {
		abort()
	}
	<-ctx.Done()
	if down := a.Down(); down != nil { // for the process that asked for it
		k.Unsure = down.Error()
		return errors.Join(err, down, write())
	}
	return errors.Join(err, os.Remove(filepath.Join(dir, fileKept)))
}

// Look returns the fleet that is up; ErrDown if there is none.
func Look(dir string) (*Kept, error) {
	if !flock.Held(filepath.Join(dir, fileHeld)) {
		return nil, ErrDown
	}
	k, err := read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: one is being brought up or down", ErrDown)
	}
	return k, err
}

func read(dir string) (*Kept, error) {
	b, err := os.ReadFile(filepath.Join(dir, fileKept))
	if err != nil {
		return nil, err
	}
	k := new(Kept)
	return k, userfile.JSON(b, schemaKept, k)
}

// Down ends the fleet that is up, and returns when its keeper is gone.
func Down(ctx context.Context, dir string) (*Kept, error) {
	k, err := Look(dir)
	if err != nil {
		if !flock.Held(filepath.Join(dir, fileHeld)) { // what a keeper left that was killed
			_ = os.Remove(filepath.Join(dir, fileKept))
		}
		return nil, err
	}
	// The process that holds the lock is the keeper in the file.
	if err := syscall.Kill(k.Keeper, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return k, fmt.Errorf("ending the fleet: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, downLimit)
	defer cancel()
	for flock.Held(filepath.Join(dir, fileHeld)) {
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return k, fmt.Errorf("ending the fleet: its keeper, process %d, is still there: %w", k.Keeper, ctx.Err())
		}
	}
	if left, err := read(dir); err == nil {
		_ = os.Remove(filepath.Join(dir, fileKept))
		if left.Unsure != "" {
			return k, errors.New(left.Unsure)
		}
	}
	return k, nil
}
