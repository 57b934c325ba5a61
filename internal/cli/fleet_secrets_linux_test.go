package cli

import (
	"bytes"
	"encoding/base64"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// launched starts weir in the folder dir, with only env as its environment. It is killed at the end of the
// test if still running.
func launched(t *testing.T, weir, name, dir string, user *syscall.Credential, env []string, args ...string) *proc {
	t.Helper()
	p := &proc{name: name, cmd: exec.Command(weir, args...), ended: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append([]string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "GORACE=" + quick}, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState says how
		close(p.ended)
	}()
	t.Cleanup(func() {
		if !latch.Closed(p.ended) {
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
		if t.Failed() {
			t.Logf("%s: %v\n%s", p.name, p.cmd.ProcessState, &p.stderr)
		}
	})
	return p
}

// A wire is a proxy to a server that records all traffic.
type wire struct {
	at string

	mu   sync.Mutex
	seen bytes.Buffer
}

func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.Write(b)
}

func (w *wire) bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.seen.Bytes())
}

// tap lays a wire to a server.
func tap(t *testing.T, to string) *wire {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	w := &wire{at: l.Addr().String()}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				all.Go(func() {
					_, _ = io.Copy(io.MultiWriter(way[1], w), way[0])
					in.Close()
					out.Close()
				})
			}
		}
	})
	return w
}

// carries reports whether a text crossed, plain or in base64 as JSON has bytes.
func (w *wire) carries(text string) bool {
	seen := w.bytes()
	for shift := range 3 {
		form := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), text...))
		if bytes.Contains(seen, []byte(form[(shift*8+5)/6:(shift+len(text))*8/6])) {
			return true
		}
	}
	return bytes.Contains(seen, []byte(text))
}

// Agents look secrets up on their own hosts; the coordinator has none. Its job crosses a server in the
// clear, yet no byte shows a secret or the scenario. No file keeps one, even if the coordinator is killed
// during the run and another resumes it.
func TestFleetSecretsNeverSentOrStored(t *testing.T) {
	t.Parallel()
	const mark = "W8tchedP4yloadMark"
	weir := filepath.Join(withWeir(t), "weir")
	for _, way := range []struct{ name, reference string }{{"a variable", "${env:NEST}"}, {"a file", ""}} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			target := natsdtest.Start(t, func(o *server.Options) { o.Username, o.Password = "alice", canary })
			hub := tap(t, strings.TrimPrefix(meeting(t), "nats://"))
			at := "nats://" + hub.at
			root := t.TempDir()
			dirs := map[string]string{}
			for _, name := range []string{"coordinator", "a", "b"} {
				dirs[name] = filepath.Join(root, name)
				must.Do(t, os.Mkdir(dirs[name], 0o700))
			}
			nest := filepath.Join(t.TempDir(), "nest.txt")
			must.Do(t, os.WriteFile(nest, []byte(canary+"\n"), 0o600))
			reference := "'" + way.reference + "'"
			allow, env := []string{"--allow-env", "OTHER,NEST"}, []string{"NEST=" + canary}
			if way.reference == "" {
				reference = "{file: " + nest + "}"
				allow, env = []string{"--allow-file", nest}, nil
			}
			for name, text := range map[string]string{
				"s.yaml": "weir: 1\nname: watched\nsystem:\n  driver: nats\n  start: none\n  options: {address: [" + target.ClientURL() + "], user: alice, password: " + reference + "}\n" +
					"topology: {producers: 2, consumers: 2}\nload: {rate: 200/s}\nmessage: {payload: {file: body.bin}}\nwarmup: 0s\nmeasure: 5s\ndrain: 60s\n",
				"body.bin": strings.Repeat(mark, 8),
			} {
				must.Do(t, os.WriteFile(filepath.Join(dirs["coordinator"], name), []byte(text), 0o600))
			}
			for _, name := range []string{"a", "b"} {
				launched(t, weir, "agent "+name, dirs[name], nil, env, append([]string{"agent", "--join", at, "--name", name, "--dir", "own"}, allow...)...)
			}
			run := launched(t, weir, "coordinator", dirs["coordinator"], nil, nil, "run", "s.yaml", "--fleet", "2", "--nats", at, "--out", "r")
			run.until(t, "measuring")
			look := func(when string) {
				t.Helper()
				for path, how := range nests(t, root) {
					t.Errorf("%s the canary is in %s (%s)", when, path, how)
				}
				if how := sighted(hub.bytes()); how != "" {
					t.Errorf("%s the canary crossed the server (%s)", when, how)
				}
			}
			run.signal(t, syscall.SIGKILL)
			run.end(t)
			if kept, err := filepath.Glob(filepath.Join(dirs["coordinator"], ".local/state/weir/fleet/runs/*.json")); err != nil || len(kept) != 1 {
				t.Fatalf("%v, %v; want one file of the run that can be taken up", kept, err)
			}
			look("after the coordinator was killed")
			_, said, _ := strings.Cut(run.stderr.String(), "weir run --resume ")
			id, _, _ := strings.Cut(said, " ")
			again := launched(t, weir, "second coordinator", dirs["coordinator"], nil, nil, "run", "--resume", id, "--nats", at)
			if code := again.end(t); code != int(OK) && code != int(Invalid) {
				t.Fatalf("exit code %d", code)
			}
			r := must.Get(result.Read(filepath.Join(dirs["coordinator"], "r")))(t)
			if m := r.Result.MessagesAll; m.Scheduled != 1000 || m.Sent != 1000 || m.Failed > 0 {
				t.Errorf("%+v; want 1000 sent", m)
			}
			look("after the run")
			for name, p := range map[string]*proc{"the coordinator": run, "the second": again} {
				if how := sighted([]byte(p.stdout.String() + p.stderr.String())); how != "" {
					t.Errorf("%s shows the canary (%s)", name, how)
				}
			}
			// The recorder sees the fleet's messages, so it would see secrets.
			if !hub.carries("weir.order.beacon") || !hub.carries(id) {
				t.Error("the wire was not watched")
			}
			for _, text := range []string{mark, "alice", "payload:", "system:"} {
				if hub.carries(text) {
					t.Errorf("%q of the scenario crossed the server", text)
				}
			}
		})
	}
}

// It lists all that is not allowed, with exit code 2, before anyone connects to the system.
func TestAgentRejectsWhatItDoesNotAllow(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var came atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			c.Close()
		}
	}()
	defer func() { l.Close(); <-done }()
	weir := filepath.Join(withWeir(t), "weir")
	dir := t.TempDir()
	nest := filepath.Join(dir, "nest.txt")
	must.Do(t, os.WriteFile(nest, []byte("from the file"), 0o600))
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	at := free.Addr().String()
	free.Close()
	launched(t, weir, "agent all", dir, nil, []string{"NEST=x"}, "agent", "--join", "weir://"+at, "--name", "all", "--allow-env", "NEST", "--allow-file", nest+",ca.pem")
	launched(t, weir, "agent none", dir, nil, []string{"NEST=x"}, "agent", "--join", "weir://"+at, "--name", "none")
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"a variable", []string{"--option", "user=u", "--option", "password=${env:NEST}"}, "agent none: not allowed: env NEST: start the agent with --allow-env NEST"},
		{"a variable that is not a secret", []string{"--option", "user=${env:NEST}", "--option", "password=${env:NEST}"}, "agent none: not allowed: env NEST: start the agent with --allow-env NEST"},
		{"a file", []string{"--option", "user=u", "--option", "password={file: nest.txt}"}, "agent none: not allowed: file " + nest + ": start the agent with --allow-file " + nest},
		{"a file that the driver reads", []string{"--option", "tls.ca=ca.pem"}, "agent none: not allowed: file ca.pem: start the agent with --allow-file ca.pem"},
		{
			"all of it",
			[]string{"--option", "user=u", "--option", "password=${env:NEST}", "--option", "tls.ca=ca.pem"},
			"agent none: not allowed: env NEST, file ca.pem: start the agent with --allow-env NEST --allow-file ca.pem",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := slices.Concat([]string{"run", "--fleet", "2", "--listen", at, "--driver", "nats", "--start", "none", "--address", "nats://" + l.Addr().String(), "--producers", "2", "--out", "r"}, tt.args)
			run := launched(t, weir, "coordinator", dir, nil, []string{"NEST=x"}, args...)
			if code := run.end(t); code != int(Usage) || !strings.Contains(run.stderr.String(), "weir: "+tt.want+"\n") {
				t.Errorf("exit code %d; want 2, and %q:\n%s", code, tt.want, &run.stderr)
			}
			if strings.Contains(run.stderr.String(), "agent all:") {
				t.Errorf("an agent that allows it refuses:\n%s", &run.stderr)
			}
			if _, err := os.Stat(filepath.Join(dir, "r")); err == nil {
				t.Error("a result folder is left")
			}
		})
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d connections to the system; want none", n)
	}
}

// The workers belong to the user's own run, so they can access what its scenario names, and keep secrets as
// well as one process does.
func TestFleetWorkersUseTheUsersSecrets(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	s := natsdtest.Start(t, func(o *server.Options) { o.Username, o.Password = "alice", canary })
	f := &flight{
		files: map[string]string{
			"s.yaml":   "weir: 1\nsystem:\n  driver: nats\n  options: {user: alice, password: {file: nest.txt}}\nload: {rate: 200/s}\nplacement: split\nwarmup: 0s\nmeasure: 1s\ndrain: 1m\n",
			"nest.txt": canary + "\n",
		},
		args: []string{"run", "s.yaml", "--address", s.ClientURL(), "--out", "r"},
	}
	if code := f.fly(t); code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d\n%s", code, &f.stderr)
	}
	r := must.Get(result.Read(filepath.Join(f.dir, "r")))(t)
	if m := r.Result.MessagesAll; m.Sent != 200 || m.Delivered != 200 {
		t.Errorf("%+v; want 200 sent and delivered", m)
	}
}

// On loopback, without explicit tokens, an agent joins its own user's coordinator, and another user's
// refuses it.
func TestTwoUsersOnHostAreIsolated(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	if os.Geteuid() != 0 {
		needs.Host(t, "root", "only root runs weir as a second user")
	}
	const nobody = 65534
	other := &syscall.Credential{Uid: nobody, Gid: nobody}
	// A copy that every user may run: the folders of tests are their owner's only.
	base, err := os.MkdirTemp("", "weir-two-users-") //nolint:usetesting // T.TempDir is its owner's only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	self := must.Get(os.Executable())(t)
	weir, own, theirs := filepath.Join(base, "weir"), filepath.Join(base, "own"), filepath.Join(base, "theirs")
	if out, err := exec.Command("cp", self, weir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, dir := range []string{own, theirs} {
		must.Do(t, os.Mkdir(dir, 0o700))
	}
	for path, mode := range map[string]os.FileMode{base: 0o755, weir: 0o755} {
		must.Do(t, os.Chmod(path, mode))
	}
	must.Do(t, os.Chown(theirs, nobody, nobody))
	keep := filepath.Join(own, ".local/state/weir/fleet")
	for _, tt := range []struct {
		name           string
		coordinator    string
		by             *syscall.Credential
		agents, others string
		user           *syscall.Credential
	}{
		{"a coordinator of root", own, nil, own, theirs, other},
		{"a coordinator of another", theirs, other, theirs, own, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
			at := l.Addr().String()
			l.Close()
			run := launched(t, weir, "coordinator", tt.coordinator, tt.by, nil, "run", "--fleet", "1", "--listen", at, "--driver", "noop", "--rate", "100/s", "--warmup", "0s", "--measure", "1s", "--out", "r")
			run.until(t, "0 of 1 agents have joined")
			stranger := launched(t, weir, "agent of the other user", tt.others, tt.user, []string{"NEST=x"}, "agent", "--join", "weir://"+at, "--name", "stranger", "--allow-env", "NEST")
			if code := stranger.end(t); code != int(Unreachable) || !strings.Contains(stranger.stderr.String(), "wrong certificate") {
				t.Errorf("the other user's agent: exit code %d\n%s", code, &stranger.stderr)
			}
			if tt.user != nil { // root may read everything
				thief := launched(t, weir, "agent with the other user's keep", tt.others, tt.user, []string{"WEIR_FLEET_DIR=" + keep}, "agent", "--join", "weir://"+at, "--name", "thief")
				if code := thief.end(t); code != int(Usage) || !strings.Contains(thief.stderr.String(), "permission denied") {
					t.Errorf("by the other's keep: exit code %d\n%s", code, &thief.stderr)
				}
			}
			launched(t, weir, "agent of the same user", tt.agents, tt.by, nil, "agent", "--join", "weir://"+at, "--name", "mine")
			if code := run.end(t); code != int(OK) && code != int(Invalid) {
				t.Errorf("exit code %d", code)
			}
			if strings.Contains(run.stderr.String(), "stranger") || strings.Contains(run.stderr.String(), "thief") {
				t.Errorf("the other user's agent came in:\n%s", &run.stderr)
			}
			must.Do(t, os.RemoveAll(filepath.Join(tt.coordinator, "r")))
		})
	}
	err = filepath.WalkDir(keep, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err == nil && path == keep && i.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, i.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
