package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// The user's config has the way to a host that only another one reaches. It also shares connections, and the user has one:
// weir goes through it, and it stays.
func TestHostsBehindAJumpHost(t *testing.T) {
	f := newSSHFleet(t)
	must.Do(t, ip(f.nets.host("hub").space, "route add unreachable "+f.nets.Addr("c")+"/32"))
	jump := "root@" + f.nets.Addr("b")
	f.write("hub/root/.ssh/config", "Host inner\n  HostName "+f.nets.Addr("c")+"\n  User root\n  ProxyJump "+jump+
		"\nHost *\n  ControlMaster auto\n  ControlPath /root/.ssh/own-%C\n  ControlPersist yes\n")
	ssh := func(args ...string) {
		t.Helper()
		if p := f.program(nil, append([]string{"ssh"}, args...)...); p.end(t) != 0 {
			t.Fatalf("ssh %s: %s", strings.Join(args, " "), &p.stderr)
		}
	}
	ssh(jump, "true")
	f.before["hub"], f.before["b"] = len(f.processes("hub")), len(f.processes("b"))
	if f.before["hub"] != 1 {
		t.Fatalf("the user's own connection: %s", f.processes("hub"))
	}
	file := f.hosts(f.at("a", "root", ""), "inner: {}")
	said := f.do(t, ran, "run", "--hosts", file, "--driver", "noop", "--producers", "2", "--rate", "200/s", "--warmup", "0s", "--measure", "1s", "--drain", "1s", "--out", "r")
	if !strings.Contains(said, "inner: agent started, which joins through ssh") || !strings.Contains(said, "agents      2: a on ") {
		t.Errorf("behind b: %s", said)
	}
	f.nothing(t, "after a run")
	ssh("-O", "check", jump)

	f.off("b")
	f.before["hub"] = 0
	if said := f.do(t, []Code{Unreachable}, "fleet", "up", file); !strings.Contains(said, "inner (inner): reaching it: ") {
		t.Errorf("without the jump host: %s", said)
	}
	f.nothing(t, "without the jump host")
}

// The role does with Ansible's own connections what weir fleet up does.
func TestHostsByAnsible(t *testing.T) {
	f := newSSHFleet(t)
	if _, err := exec.LookPath("ansible-playbook"); err != nil {
		needs.Host(t, "ansible", err)
	}
	role := must.Get(filepath.Abs("../../deploy/ansible"))(t)
	token := f.command("fleet", "token", "--listen", sshListen)
	if code := token.end(t); code != int(OK) {
		t.Fatalf("exit code %d: %s", code, &token.stderr)
	}
	url := strings.TrimSpace(token.stdout.String())
	_, secret, ok := strings.Cut(url, "token=")
	if !ok {
		t.Fatal("the URL has no token")
	}
	inventory := func(b string) {
		f.write("hub/inventory", "a ansible_host="+f.nets.Addr("a")+"\nb ansible_host="+f.nets.Addr("b")+b+"\n")
	}
	play := func(works bool, args ...string) string {
		t.Helper()
		p := f.program([]string{"WEIR_JOIN=" + url, "ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3", "ANSIBLE_SSH_ARGS=-o ControlMaster=auto -o ControlPersist=5s", "LC_ALL=C.UTF-8"},
			append([]string{"ansible-playbook", "-i", f.path("hub/inventory"), "-e", "weir_program=" + f.weir, filepath.Join(role, "fleet.yml")}, args...)...)
		code := p.end(t)
		said := p.stdout.String() + p.stderr.String()
		if (code == 0) != works {
			t.Fatalf("ansible-playbook %s: exit code %d\n%s", strings.Join(args, " "), code, said)
		}
		if strings.Contains(said, secret) {
			t.Errorf("Ansible shows the secret")
		}
		return said
	}
	inventory("")
	play(true, "-vvv")
	for _, host := range []string{"a", "b"} {
		running := strings.Join(f.processes(host), "\n")
		if !strings.Contains(running, "/weir agent --name "+host) || strings.Contains(running, secret) {
			t.Errorf("%s runs %s", host, running)
		}
		for _, name := range f.files(host) {
			if b, err := os.ReadFile(f.path(host, name)); err == nil && bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s on %s has the secret", name, host)
			}
		}
	}
	if said := play(true); strings.Count(said, "changed=0 ") != 2 {
		t.Errorf("brought up twice: %s", said)
	}
	said := f.do(t, ran, "run", "--fleet", "2", "--listen", sshListen, "--driver", "noop", "--producers", "2", "--rate", "200/s", "--warmup", "0s", "--measure", "1s", "--out", "r")
	if !strings.Contains(said, "agents      2: a on ") {
		t.Errorf("a run on them: %s", said)
	}
	play(true, "-e", "weir_state=down")
	f.nothing(t, "after down")
	for _, name := range []string{"a", "b"} {
		if slices.ContainsFunc(f.files(name), func(path string) bool { return strings.Contains(path, "agent.") }) {
			t.Errorf("left on %s: %v", name, f.files(name))
		}
	}

	// One agent that ends at once ends the other, and says why.
	inventory(` weir_args='["--wrong"]'`)
	if said := play(false); !strings.Contains(said, "--wrong") {
		t.Errorf("a wrong flag: %s", said)
	}
	f.nothing(t, "after a wrong flag")
	play(true, "-e", "weir_state=down", "-e", "weir_purge=true")
	for _, name := range []string{"a", "b"} {
		if left := f.files(name); len(left) > 1 || len(left) == 1 && left[0] != "root/.cache" {
			t.Errorf("purged, left on %s: %v", name, left)
		}
	}
}
