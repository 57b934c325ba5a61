package cli

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/survey"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// An sshFleet is hosts with a real sshd each, in namespaces of their own: network, processes, and mounts, so that each has
// a home folder and a /tmp. weir runs on host hub. Host c has no route to where agents join, as behind a firewall.
type sshFleet struct {
	t       *testing.T
	nets    *netHosts
	base    string // folder of all files, not below /tmp
	weir    string
	servers map[string]*exec.Cmd
	before  map[string]int // processes of each host
}

const (
	sshListen = "10.78.0.1:7622"
	sshUser   = 4321 // number of the second user, bench
)

// newSSHFleet starts sshd on hosts a, b and c.
func newSSHFleet(t *testing.T) *sshFleet {
	t.Helper()
	needs.Time(t)
	if os.Geteuid() != 0 {
		needs.Host(t, "root", "only root makes hosts with an sshd")
	}
	for _, name := range []string{"/usr/sbin/sshd", "ssh", "ssh-keygen", "unshare"} {
		if _, err := exec.LookPath(name); err != nil {
			needs.Host(t, "sshd", err)
		}
	}
	f := &sshFleet{t: t, nets: newNetHosts(t, "hub", "a", "b", "c"), servers: map[string]*exec.Cmd{}, before: map[string]int{}}
	var err error
	if f.base, err = os.MkdirTemp("/var/tmp", "weir-ssh-test-"); err != nil { //nolint:usetesting // hosts have a /tmp of their own
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(f.base) })
	must.Do(t, os.Chmod(f.base, 0o755))
	self := must.Get(os.Executable())(t)
	f.weir = filepath.Join(f.base, "weir")
	if out, err := exec.Command("cp", self, f.weir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, args := range []string{"addr add 10.78.0.1/32 dev lo", "link set lo up"} {
		must.Do(t, ip(f.nets.host("hub").space, args))
	}
	for _, dir := range []string{"hub/root/.ssh", "hub/tmp"} {
		must.Do(t, os.MkdirAll(f.path(dir), 0o700))
	}
	f.keygen("hub/root/.ssh/id_ed25519")
	key := must.Get(os.ReadFile(f.path("hub/root/.ssh/id_ed25519.pub")))(t)
	f.write("authorized", string(key))
	passwd := must.Get(os.ReadFile("/etc/passwd"))(t)
	if _, err := user.Lookup("sshd"); err != nil { // that sshd gives its rights up to
		passwd = append(passwd, "sshd:x:4322:65534::/run/sshd:/usr/sbin/nologin\n"...)
	}
	f.write("passwd", string(passwd)+fmt.Sprintf("bench:x:%d:%[1]d::/home/bench:/bin/sh\nlocked:x:%[1]d:%[1]d::/home/bench:/usr/sbin/nologin\n", sshUser))
	f.write("uname", "#!/bin/sh\ncase $1 in -m) echo aarch64;; *) echo Linux;; esac\n")
	must.Do(t, os.Chmod(f.path("uname"), 0o755))
	known := ""
	for _, name := range []string{"a", "b", "c"} {
		f.keygen(name + "/key")
		key := must.Get(os.ReadFile(f.path(name, "key.pub")))(t)
		known += f.nets.Addr(name) + " " + string(key)
		f.boot(name)
	}
	f.write("hub/root/.ssh/known_hosts", known)
	t.Cleanup(func() {
		for name := range f.servers {
			f.off(name)
		}
	})
	t.Cleanup(func() { // of a test that failed with a fleet up
		p := f.command("fleet", "down")
		select {
		case <-p.ended:
		case <-time.After(30 * time.Second):
			_ = p.cmd.Process.Kill()
		}
	})
	return f
}

func (f *sshFleet) path(parts ...string) string {
	return filepath.Join(append([]string{f.base}, parts...)...)
}

func (f *sshFleet) write(name, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.path(name)), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.path(name), []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *sshFleet) keygen(name string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.path(name)), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f.path(name)).CombinedOutput(); err != nil {
		f.t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
}

// boot starts a host's processes. All hosts have: root's home in NAME/root, that of bench in NAME/home/bench, a /tmp in which
// nothing may be executed, and a folder /mnt/small of 1 MiB. bench may forward no ports, and locked has no shell. On a host
// with a file NAME/arm, uname says aarch64.
func (f *sshFleet) boot(name string) {
	f.t.Helper()
	for _, dir := range []string{"root", "home/bench"} {
		if err := os.MkdirAll(f.path(name, dir), 0o755); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := os.Chown(f.path(name, "home/bench"), sshUser, sshUser); err != nil {
		f.t.Fatal(err)
	}
	f.write(name+"/sshd_config", strings.Join([]string{
		"ListenAddress " + f.nets.Addr(name), "HostKey " + f.path(name, "key"), "PidFile none", "UsePAM no", "StrictModes no",
		"Subsystem sftp internal-sftp", "PermitRootLogin yes", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"AuthorizedKeysFile " + f.path("authorized"), "Match User bench", "AllowTcpForwarding no", "",
	}, "\n"))
	if name != "c" {
		if err := ip(f.nets.host(name).space, "route replace 10.78.0.1/32 via "+f.nets.Addr("hub")); err != nil {
			f.t.Fatal(err)
		}
	}
	script := strings.Join([]string{
		"set -e", "mount -t tmpfs tmpfs /run", "mkdir /run/sshd",
		"mount -t tmpfs -o noexec,mode=1777 tmpfs /tmp", "mkdir -m 777 /tmp/dir",
		"mount -t tmpfs -o mode=755 tmpfs /mnt", "mkdir /mnt/small", "mount -t tmpfs -o size=1m tmpfs /mnt/small",
		"mount --bind " + f.path("passwd") + " /etc/passwd",
		"mount --bind " + f.path(name, "root") + " /root",
		"mount --bind " + f.path(name, "home") + " /home",
		"if [ -e " + f.path(name, "arm") + " ]; then mount --bind " + f.path("uname") + " $(command -v uname); fi",
		"exec /usr/sbin/sshd -D -e -f " + f.path(name, "sshd_config"),
	}, "\n")
	cmd := exec.Command("unshare", "-m", "-p", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script)
	var said watch
	cmd.Stdout, cmd.Stderr = &said, &said
	up := make(chan struct{})
	said.when("Server listening", func() { close(up) })
	if err := f.nets.Start(name, cmd); err != nil {
		f.t.Fatal(err)
	}
	f.servers[name] = cmd
	select {
	case <-up:
	case <-time.After(20 * time.Second):
		f.t.Fatalf("sshd on %s does not start: %s", name, &said)
	}
	f.before[name] = len(f.processes(name))
}

// off ends all processes of a host at once.
func (f *sshFleet) off(name string) {
	cmd := f.servers[name]
	delete(f.servers, name)
	_ = cmd.Process.Kill() // and so its child, the first process of the host
	_ = cmd.Wait()
}

// command runs weir on the hub.
func (f *sshFleet) command(args ...string) *proc {
	f.t.Helper()
	return f.program(nil, append([]string{f.weir}, args...)...)
}

// program runs a program on the hub, with more variables.
func (f *sshFleet) program(env []string, args ...string) *proc {
	f.t.Helper()
	p := &proc{name: strings.Join(args, " "), ended: make(chan struct{})}
	p.cmd = exec.Command("unshare", append([]string{"-m", "sh", "-c", "mount --bind " + f.path("hub/root") + ` /root && exec "$@"`, "sh"}, args...)...)
	p.cmd.Dir = f.path("hub")
	p.cmd.Env = append([]string{"HOME=/root", "TMPDIR=" + f.path("hub/tmp"), "PATH=" + os.Getenv("PATH"), "GORACE=" + quick, "WEIR_FLEET_DIR=" + f.path("hub/state")}, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := f.nets.Start("hub", p.cmd); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return p
}

// do runs weir on the hub to its end, with one of these codes, and returns what it said.
func (f *sshFleet) do(t *testing.T, codes []Code, args ...string) string {
	t.Helper()
	p := f.command(args...)
	code := p.end(t)
	said := p.stdout.String() + p.stderr.String()
	if !slices.Contains(codes, Code(code)) {
		t.Fatalf("weir %s: exit code %d; want %v\n%s", p.name, code, codes, said)
	}
	return said
}

// hosts writes a hosts.yaml with these lines for hosts.
func (f *sshFleet) hosts(lines ...string) string {
	f.t.Helper()
	text := "weir-hosts: 1\nlisten: " + sshListen + "\nhosts:\n"
	for _, line := range lines {
		text += "  " + line + "\n"
	}
	f.write("hub/hosts.yaml", text)
	return "hosts.yaml"
}

// at is a line of a host.
func (f *sshFleet) at(name, user, more string) string {
	return fmt.Sprintf("%s: {ssh: %s@%s%s}", name, user, f.nets.Addr(name[:1]), more)
}

// tokens are those with which agents may join.
func (f *sshFleet) tokens() []admission.Issued {
	f.t.Helper()
	keep, err := admission.Open(f.path("hub/state"), time.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	all, err := keep.List()
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(i admission.Issued) bool { return i.Revoked || i.Ended() })
}

func (f *sshFleet) three() string {
	return f.hosts(f.at("a", "root", ", labels: {zone: one}"), f.at("b", "root", ""), f.at("c", "root", ""))
}

// processes are the command lines of a host's processes.
func (f *sshFleet) processes(name string) (all []string) {
	f.t.Helper()
	var own syscall.Stat_t
	if err := syscall.Fstat(int(f.nets.host(name).space.Fd()), &own); err != nil {
		f.t.Fatal(err)
	}
	pids, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, dir := range pids {
		var st syscall.Stat_t
		if filepath.Base(dir) == strconv.Itoa(os.Getpid()) || syscall.Stat(dir+"/ns/net", &st) != nil || st.Ino != own.Ino {
			continue // or this process, whose first thread made a host
		}
		if b, err := os.ReadFile(dir + "/cmdline"); err == nil && len(b) > 0 {
			all = append(all, filepath.Base(dir)+" "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return all
}

// files are those of a host, or of weir's folders on the hub.
func (f *sshFleet) files(name string) (all []string) {
	f.t.Helper()
	for _, dir := range []string{"root", "home", "tmp", "state"} {
		_ = filepath.WalkDir(f.path(name, dir), func(path string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(f.path(name), path)
			if strings.HasPrefix(rel, "state/streams") || rel == "state/runs" { // folders of every coordinator
				return nil
			}
			if err == nil && rel != dir && !strings.Contains(rel, ".ssh") && !strings.Contains(rel, ".ansible") && rel != "home/bench" {
				all = append(all, rel)
			}
			return nil
		})
	}
	if f.servers[name] == nil {
		return all
	}
	// What only the host's own mounts show.
	for _, line := range f.processes(name) {
		pid, command, _ := strings.Cut(line, " ")
		if !strings.Contains(command, "sshd -D") && !strings.Contains(command, "sshd: /usr/sbin/sshd -D") || strings.Contains(command, "unshare") {
			continue
		}
		root := "/proc/" + pid + "/root"
		for _, dir := range []string{"/tmp", "/mnt", "/run"} {
			_ = filepath.WalkDir(root+dir, func(path string, _ fs.DirEntry, err error) error {
				if rel := strings.TrimPrefix(path, root); err == nil && !slices.Contains([]string{"/tmp", "/tmp/dir", "/mnt", "/mnt/small", "/run", "/run/sshd"}, rel) && !strings.HasPrefix(rel, "/run/mount") {
					all = append(all, rel)
				}
				return nil
			})
		}
		tcp, err := os.ReadFile("/proc/" + pid + "/net/tcp")
		if err != nil {
			f.t.Fatal(err)
		}
		for _, line := range strings.Split(string(tcp), "\n") {
			if x := strings.Fields(line); len(x) > 3 && x[3] == "0A" && !strings.HasSuffix(x[1], ":0016") {
				all = append(all, "a listening socket "+x[1])
			}
		}
		break
	}
	return all
}

// nothing checks that no process, socket or file is left anywhere, but the programs and the hub's certificate, secret
// and list of tokens.
func (f *sshFleet) nothing(t *testing.T, when string) {
	t.Helper()
	for _, name := range []string{"hub", "a", "b", "c"} {
		var left []string
		for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if left = f.processes(name); len(left) <= f.before[name] || time.Now().After(limit) {
				break
			}
		}
		if len(left) > f.before[name] {
			t.Errorf("%s: processes are left on %s:\n%s", when, name, strings.Join(left, "\n"))
		}
		for _, path := range f.files(name) {
			switch {
			case strings.HasPrefix(path, "state") && slices.Contains([]string{"hub.pem", "secret", "tokens.json", "lock", "hosts.lock", "ssh.lock"}, filepath.Base(path)):
			case name != "hub" && strings.HasSuffix(path, "/.cache"), strings.HasSuffix(path, "/.cache/weir"), strings.HasSuffix(path, "/weir-programs"):
			case strings.Contains(path, "/weir-programs/") && (filepath.Base(path) == "weir" || len(filepath.Base(path)) == 64):
			default:
				t.Errorf("%s: %s is left on %s", when, path, name)
			}
		}
	}
}

var ran = []Code{OK, Invalid} // a busy host may spoil a run

func TestHostsBySSH(t *testing.T) {
	f := newSSHFleet(t)
	var begun time.Time
	step := func(what string) {
		if !begun.IsZero() {
			t.Logf("%s: %.1f s", what, time.Since(begun).Seconds())
		}
		begun = time.Now()
	}
	step("")

	// Three empty machines, in one command.
	said := f.do(t, ran, "run", "--hosts", f.three(), "--driver", "noop", "--producers", "3", "--rate", "300/s", "--warmup", "0s", "--measure", "2s", "--out", "r")
	t.Log(said)
	step("run --hosts of 2 s, first time")
	if strings.Count(said, "program sent:") != 3 {
		t.Errorf("the program was not sent three times:\n%s", said)
	}
	for _, want := range []string{`weir: 3 agents joined, and looked at their hosts \(\d+\.\d s\)\n`, `weir: 3 hosts: up in \d+\.\d s, run in \d+\.\d s, down in \d+\.\d s\n`} {
		if !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("the seconds of the steps are missing: %s\n%s", want, said)
		}
	}
	f.ran(t, 3, 600)
	f.nothing(t, "after run --hosts")

	// Up, status, a run, down. Nothing is sent again.
	said = f.do(t, []Code{OK}, "fleet", "up", "hosts.yaml")
	step("up, second time")
	if strings.Count(said, "the program is there") != 3 || strings.Contains(said, "program sent") {
		t.Errorf("the program was sent again:\n%s", said)
	}
	for _, want := range []string{"a: reached", "a: linux/", "c: agent started, which joins through ssh", "joins directly", "ssh root@" + f.nets.Addr("b"), "weir run --fleet 3 --listen " + sshListen} {
		if !strings.Contains(said, want) {
			t.Errorf("up does not say %q", want)
		}
	}
	for _, name := range []string{"hub", "a", "b", "c"} { // the URL is in no argument and no variable
		for _, line := range f.processes(name) {
			pid, _, _ := strings.Cut(line, " ")
			environ, err := os.ReadFile("/proc/" + pid + "/environ")
			if strings.Contains(line+string(environ), "token=") || err != nil && !os.IsNotExist(err) {
				t.Errorf("on %s a process shows the token (%v): %s", name, err, line)
			}
		}
	}
	said = f.do(t, []Code{OK}, "fleet", "status", "--json")
	var status survey.Status
	if err := json.Unmarshal([]byte(said[strings.Index(said, "{"):]), &status); err != nil || len(status.Agents) != 3 || len(status.Hosts) != 3 || !status.Hosts[2].Forwarded || status.Hosts[0].Forwarded || status.Hosts[1].SentB != 0 {
		t.Errorf("status: %v\n%s", err, said)
	}
	if said = f.do(t, []Code{OK}, "fleet", "status"); !strings.Contains(said, "joins through ssh") || !strings.Contains(said, "zone=one") {
		t.Errorf("status: %s", said)
	}
	step("status, twice")
	f.do(t, ran, "run", "--fleet", "3", "--listen", sshListen, "--driver", "noop", "--producers", "3", "--rate", "300/s", "--warmup", "0s", "--measure", "2s", "--out", "r")
	f.ran(t, 3, 600)
	step("run of 2 s")
	if said = f.do(t, []Code{Usage}, "fleet", "up", "hosts.yaml"); !strings.Contains(said, "a fleet is up already") {
		t.Errorf("up, twice: %s", said)
	}
	if said = f.do(t, []Code{OK}, "fleet", "down"); !strings.Contains(said, "ended 3 agents") {
		t.Errorf("down: %s", said)
	}
	step("down")
	f.nothing(t, "after down")

	// Purged, nothing at all is left on a host.
	if said = f.do(t, []Code{OK}, "fleet", "down", "--purge", "hosts.yaml"); !strings.Contains(said, "no fleet is up") || !strings.Contains(said, "removed the programs from 3 hosts") {
		t.Errorf("purge: %s", said)
	}
	for _, name := range []string{"a", "b", "c"} {
		if left := f.files(name); len(left) > 0 {
			t.Errorf("after a purge %s has %v", name, left)
		}
	}
	f.nothing(t, "after a purge")
	step("purge")
}

// ran checks a result, and removes it.
func (f *sshFleet) ran(t *testing.T, agents int, sent uint64) {
	t.Helper()
	r := must.Get(result.Read(f.path("hub/r")))(t)
	if m := r.Result.MessagesAll; len(r.Result.Agents) != agents || m.Sent != sent {
		t.Errorf("%d agents sent %d; want %d and %d", len(r.Result.Agents), m.Sent, agents, sent)
	}
	must.Do(t, os.RemoveAll(f.path("hub/r")))
}

// Connections, hosts and weir itself end in the middle of a run: the rest ends, too.
func TestSSHHostsLostDuringRun(t *testing.T) {
	f := newSSHFleet(t)
	run := func() *proc {
		t.Helper()
		p := f.command("run", "--hosts", f.three(), "--driver", "noop", "--producers", "3", "--rate", "300/s", "--warmup", "0s", "--measure", "10s", "--drain", "2s", "--out", "r")
		p.until(t, "measuring")
		return p
	}
	ssh := func(host string) (pids []int) {
		for _, line := range f.processes("hub") {
			pid, command, _ := strings.Cut(line, " ")
			if n, err := strconv.Atoi(pid); err == nil && strings.Contains(command, "ControlPath=") && strings.Contains(command, "@"+f.nets.Addr(host)+" ") {
				pids = append(pids, n)
			}
		}
		return pids
	}
	ended := func(p *proc, codes ...Code) {
		t.Helper()
		if code := p.end(t); !slices.Contains(codes, Code(code)) {
			t.Errorf("exit code %d; want %v\n%s", code, codes, &p.stderr)
		}
	}

	// The user ends it: at the start, while programs are sent, and in the run.
	for _, args := range [][]string{{"fleet", "up", f.three()}, {"run", "--hosts", "hosts.yaml", "--driver", "noop", "--producers", "3"}} {
		p := f.command(args...)
		p.until(t, "c: reached")
		p.signal(t, syscall.SIGINT)
		ended(p, Interrupted)
		f.nothing(t, "after an interrupted "+args[0])
		if left, err := filepath.Glob(f.path("[abc]/root/.cache/weir/weir-programs/*")); err != nil || len(left) > 0 {
			t.Errorf("after an interrupted %s: %v, %v", args[0], left, err)
		}
	}
	p := run()
	p.signal(t, syscall.SIGINT)
	ended(p, Interrupted)
	f.nothing(t, "after an interrupted run")
	must.Do(t, os.RemoveAll(f.path("hub/r")))

	// Each ssh to b is killed.
	p = run()
	pids := ssh("b")
	if len(pids) == 0 {
		t.Fatalf("there is no ssh to b:\n%s", strings.Join(f.processes("hub"), "\n"))
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	ended(p, Invalid, Unreachable)
	if said := p.stderr.String(); !strings.Contains(said, "b: its agent ended") {
		t.Errorf("a killed ssh: %s", said)
	}
	r, err := result.Read(f.path("hub/r"))
	if err != nil || r.Result.Verdict.Status != result.Invalid {
		t.Errorf("without an agent: %v", err)
	} else {
		for _, a := range r.Result.Agents {
			if k := a.Reported; a.Missing != (a.Name == "b") || a.Missing != (k != nil) || k != nil && (k.UntilNS <= 0 || k.Sent == 0 || k.Sent > 1000) {
				t.Errorf("agent %s: missing %v, reported %+v", a.Name, a.Missing, k)
			}
		}
	}
	f.nothing(t, "after ssh was killed")

	// weir is killed, and with it the pipes to ssh.
	must.Do(t, os.RemoveAll(f.path("hub/r")))
	p = run()
	if tokens := f.tokens(); len(tokens) != 1 {
		t.Errorf("in a run: tokens %+v; want its own", tokens)
	}
	p.signal(t, syscall.SIGKILL)
	p.end(t)
	if tokens := f.tokens(); len(tokens) != 0 {
		t.Errorf("weir was killed: its token still admits agents: %+v", tokens)
	}
	for _, host := range []string{"a", "b", "c"} {
		for limit := time.Now().Add(time.Minute); len(f.processes(host)) > f.before[host]; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("weir was killed, and %s runs\n%s", host, strings.Join(f.processes(host), "\n"))
			}
		}
	}

	// b is turned off. What the killed weir left is gone with the next one.
	must.Do(t, os.RemoveAll(f.path("hub/r")))
	p = run()
	f.off("b")
	ended(p, Invalid, Unreachable)
	f.boot("b")
	must.Do(t, os.RemoveAll(f.path("hub/r")))
	if left, err := filepath.Glob(f.path("hub/state/ssh-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}

	// The keeper of weir fleet up is killed.
	f.do(t, []Code{OK}, "fleet", "up", "hosts.yaml")
	for _, line := range f.processes("hub") {
		if pid, command, _ := strings.Cut(line, " "); strings.Contains(command, "internal hosts") {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	}
	if said := f.do(t, []Code{OK}, "fleet", "down"); !strings.Contains(said, "no fleet is up") {
		t.Errorf("down after the keeper was killed: %s", said)
	}

	// Two users on one host have a program and an agent each.
	two := f.hosts(f.at("a", "root", ""), f.at("a2", "bench", ""))
	f.do(t, []Code{OK}, "fleet", "up", two)
	f.do(t, []Code{OK}, "fleet", "down", "--purge", two)
	for _, path := range f.files("a") {
		t.Errorf("two users, purged: %s is left", path)
	}
}
