package cli

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// A testFleet is weir on several hosts, which are network namespaces, and the measured system on another: a
// coordinator on host hub, a NATS server on host broker, and agents on hosts with their names. They meet
// with TLS and a token.
type testFleet struct {
	t     *testing.T
	hosts *netHosts
	dir   string // the coordinator's working folder
	weir  string // the program
	state string // folder of the certificate and tokens
	url   string // where agents join
	store string // the broker's files
	all   []*proc
}

// A proc is a process on a host.
type proc struct {
	name   string
	cmd    *exec.Cmd
	stdout watch
	stderr watch
	ended  chan struct{} // closed when it has
}

// startFleet creates the hosts, with the broker on one. They are removed at the end of the test.
func startFleet(t *testing.T, agents ...string) *testFleet {
	t.Helper()
	c := &testFleet{t: t, hosts: newNetHosts(t, append([]string{"hub", "broker"}, agents...)...), dir: t.TempDir()}
	self := must.Get(os.Executable())(t)
	// By its name this binary is weir, or the server: see TestMain.
	bin := t.TempDir()
	c.weir = filepath.Join(bin, "weir")
	for _, name := range []string{"weir", "natsserver", "otherweir"} {
		must.Do(t, os.Symlink(self, filepath.Join(bin, name)))
	}
	// Before dismiss, so that they are removed after it; not in dir, where what weir
	// has written is looked at.
	c.state, c.store = filepath.Join(t.TempDir(), "state"), t.TempDir()
	t.Cleanup(c.dismiss)
	c.nats("broker", c.store)
	c.url = c.token()
	return c
}

// nats starts a NATS server with JetStream on a host, at port 4222.
func (c *testFleet) nats(host, store string) *proc {
	c.t.Helper()
	p := c.start(host, "NATS server on "+host, []string{c.other("natsserver"), "-a", c.hosts.Addr(host), "-p", "4222", "-js", "-sd", store})
	p.until(c.t, "Server is ready")
	return p
}

// other is another program that this binary is.
func (c *testFleet) other(name string) string { return filepath.Join(filepath.Dir(c.weir), name) }

// token makes one, and returns the URL by which agents join.
func (c *testFleet) token(args ...string) string {
	c.t.Helper()
	p := c.start("hub", "token", append([]string{c.weir, "fleet", "token", "--listen", c.meeting()}, args...))
	if code := p.end(c.t); code != int(OK) {
		c.t.Fatalf("weir fleet token: exit code %d\n%s", code, &p.stderr)
	}
	return strings.TrimSpace(p.stdout.String())
}

// meeting is where the coordinator listens.
func (c *testFleet) meeting() string { return net.JoinHostPort(c.hosts.Addr("hub"), "7622") }

// start starts a process on a host.
func (c *testFleet) start(host, name string, args []string, env ...string) *proc {
	c.t.Helper()
	p := &proc{name: name, cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	home := c.t.TempDir()
	p.cmd.Dir = c.dir
	p.cmd.Env = append([]string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH"), "GORACE=" + quick, "WEIR_FLEET_DIR=" + c.state}, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := c.hosts.Start(host, p.cmd); err != nil {
		c.t.Fatalf("starting %s on host %s: %v", name, host, err)
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState says how
		close(p.ended)
	}()
	c.all = append(c.all, p)
	return p
}

// agent starts one on the host of its name.
func (c *testFleet) agent(name string, args ...string) *proc {
	return c.agentOf(c.url, name, args...)
}

func (c *testFleet) agentOf(url, name string, args ...string) *proc {
	c.t.Helper()
	return c.start(name, "agent "+name, append([]string{c.weir, "agent", "--name", name}, args...), "WEIR_JOIN="+url)
}

// run starts the coordinator of a run with that many agents, which join with TLS and a token; its result is
// in folder r.
func (c *testFleet) run(agents int, args ...string) *proc {
	c.t.Helper()
	return c.runAt(agents, append([]string{"--listen", c.meeting()}, args...)...)
}

// runAt is run where the flags say.
func (c *testFleet) runAt(agents int, args ...string) *proc {
	c.t.Helper()
	return c.start("hub", "coordinator", append([]string{
		c.weir, "run", "--fleet", itoa(agents), "--fleet-wait", "90s", "--driver", "jetstream", "--start", "none",
		"--address", "nats://" + net.JoinHostPort(c.hosts.Addr("broker"), "4222"), "--out", "r",
		"--rate", "500/s", "--producers", "4", "--consumers", "4", "--destinations", "2", "--warmup", "500ms",
	}, args...))
}

// dismiss ends what still runs.
func (c *testFleet) dismiss() {
	for _, p := range slices.Backward(c.all) {
		select {
		case <-p.ended:
		default:
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
		if c.t.Failed() {
			c.t.Logf("%s: %v\n%s", p.name, p.cmd.ProcessState, &p.stderr)
		}
	}
}

// until waits for a text on stderr.
func (p *proc) until(t *testing.T, text string) {
	t.Helper()
	said := make(chan struct{})
	p.stderr.when(text, func() { close(said) })
	select {
	case <-said:
	case <-p.ended:
		if !strings.Contains(p.stderr.String(), text) {
			t.Fatalf("%s ended (%v) and did not say %q", p.name, p.cmd.ProcessState, text)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s did not say %q", p.name, text)
	}
}

// another kills the coordinator of a run, and a second later another one resumes the run, whose id it
// returns.
func (c *testFleet) another(run *proc) (again *proc, id string) {
	c.t.Helper()
	run.signal(c.t, syscall.SIGKILL)
	run.end(c.t)
	_, said, _ := strings.Cut(run.stderr.String(), "weir run --resume ")
	id, _, _ = strings.Cut(said, " ")
	time.Sleep(time.Second)
	return c.start("hub", "second coordinator", []string{c.weir, "run", "--resume", id}), id
}

// measuredFor is how far a run is in a coordinator's line, and how long it takes, both with its warm-up.
var measuredFor = regexp.MustCompile(`measuring, ([^;,]+) of ([^;,]+);`)

// untilLeft waits until at most that many seconds are left to measure. Lines come every few seconds: it counts
// on from the first.
func (p *proc) untilLeft(t *testing.T, most int) {
	t.Helper()
	span := func(s string) time.Duration {
		return must.Get(time.ParseDuration(strings.NewReplacer(" ", "", "min", "m").Replace(s)))(t)
	}
	for limit := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ended := latch.Closed(p.ended)
		if m := measuredFor.FindStringSubmatch(p.stderr.String()); m != nil {
			select {
			case <-time.After(span(m[2]) - span(m[1]) - time.Duration(most)*time.Second):
			case <-p.ended:
			}
			return
		}
		if ended || time.Now().After(limit) {
			t.Fatalf("%s (ended: %v) did not say how much is left", p.name, ended)
		}
	}
}

// end waits for the process and returns its exit code, -1 where a signal ended it.
func (p *proc) end(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(3 * time.Minute):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // where it hangs
		t.Fatalf("%s does not end", p.name)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *proc) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("signalling %s: %v", p.name, err)
	}
}

// result reads what the run came to.
func (c *testFleet) result() *result.Result {
	c.t.Helper()
	return must.Get(result.Read(filepath.Join(c.dir, "r")))(c.t).Result
}

// ended checks how the run ended: with one of these exit codes, message accounting balanced, and nothing of
// it left on the broker.
func (c *testFleet) ended(run *proc, codes ...Code) *result.Result {
	c.t.Helper()
	code := run.end(c.t)
	if !slices.Contains(codes, Code(code)) {
		c.t.Fatalf("exit code %d; want %v", code, codes)
	}
	r := c.result()
	m := r.MessagesAll
	if m.Scheduled != m.Sent+m.Dropped+m.Unsent || m.Sent != m.Confirmed+m.Failed+m.Unconfirmed || m.Confirmed != m.Delivered+m.Late+m.Lost+m.Pending+m.Corrupted+m.Unknown {
		c.t.Errorf("the books do not balance: %+v", m)
	}
	if m.Lost+m.Corrupted+m.Foreign > 0 {
		c.t.Errorf("lost %d, corrupted %d, foreign %d; want none", m.Lost, m.Corrupted, m.Foreign)
	}
	left, err := filepath.Glob(filepath.Join(c.store, "jetstream", "*", "streams", "*"))
	if err != nil || len(left) > 0 {
		c.t.Errorf("the run left on the broker: %v, %v", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(c.state, "streams", "jetstream", "*", "streams", "*")); err != nil || len(left) > 0 {
		c.t.Errorf("the run left of its reports: %v, %v", left, err)
	}
	return r
}

// whole checks that every message of the plan was sent, confirmed and delivered.
func (c *testFleet) whole(r *result.Result, scheduled uint64) {
	c.t.Helper()
	if m := r.MessagesAll; m.Scheduled != scheduled || m.Sent != scheduled || m.Confirmed != scheduled || m.Delivered != scheduled {
		c.t.Errorf("%+v; want %d sent, confirmed and delivered", m, scheduled)
	}
}

// check is a check of the verdict.
func (c *testFleet) check(r *result.Result, name string) result.Check {
	c.t.Helper()
	for _, x := range r.Verdict.Checks {
		if x.Name == name {
			return x
		}
	}
	c.t.Errorf("the verdict has no check %q", name)
	return result.Check{}
}

// events are those of a kind.
func (c *testFleet) events(kind string) (texts []string) {
	c.t.Helper()
	saved, err := result.Open(filepath.Join(c.dir, "r"))
	if err != nil {
		c.t.Fatal(err)
	}
	for ev, err := range saved.Events() {
		if err != nil {
			c.t.Fatal(err)
		}
		if ev.Kind == kind {
			texts = append(texts, ev.Text)
		}
	}
	return texts
}

// slow runs a test on hosts in parallel: it waits 10 s and more until hosts are missed.
func slow(t *testing.T) {
	t.Helper()
	needs.Time(t)
	t.Parallel()
}
