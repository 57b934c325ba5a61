package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// A brokenStart is a way to keep weir from starting agents. How it ends is in the table of docs/fleets.md.
type brokenStart struct {
	name  string
	hosts []string // lines of hosts.yaml
	file  string   // or its whole text
	path  string   // instead of PATH
	args  []string // instead of fleet up or run --hosts
	first func()
	// cut is called when the start reports progress of host b.
	cut  func(p *proc)
	when string
	last func()
}

// The two verbs that start agents on hosts.
var (
	startUp  = []string{"fleet", "up", "hosts.yaml"}
	startRun = []string{"run", "--hosts", "hosts.yaml", "--driver", "noop", "--producers", "2", "--measure", "2s", "--out", "r"}
)

func (f *sshFleet) brokenStarts(t *testing.T) []brokenStart {
	a, b, c := f.at("a", "root", ""), f.at("b", "root", ""), f.at("c", "root", "")
	head := "weir-hosts: 1\nlisten: " + sshListen + "\nhosts:\n  " + a + "\n"
	signal := func(s syscall.Signal) func(p *proc) { return func(p *proc) { p.signal(t, s) } }
	// kill kills what runs on the hub with these words in its command, as soon as it does.
	kill := func(words ...string) func(*proc) {
		return func(*proc) {
			for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
				killed := 0
				for _, line := range f.processes("hub") {
					pid, command, _ := strings.Cut(line, " ")
					all := true
					for _, w := range words {
						all = all && strings.Contains(command, w)
					}
					if n, err := strconv.Atoi(pid); err == nil && all && syscall.Kill(n, syscall.SIGKILL) == nil {
						killed++
					}
				}
				if killed > 0 {
					return
				}
			}
			t.Errorf("nothing to kill with %q", words)
		}
	}
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	arm := func() {
		f.write("c/arm", "")
		f.off("c")
		f.boot("c")
	}
	return []brokenStart{
		{name: "no such file", args: []string{"fleet", "up", "nosuch.yaml"}},
		{name: "an unknown key", file: head + "  b: {shh: x}\n"},
		{name: "a host twice", file: head + "  b: {ssh: root@" + f.nets.Addr("a") + "}\n"},
		{name: "a name twice", file: head + "  a: {ssh: root@" + f.nets.Addr("b") + "}\n"},
		{name: "no program for a platform", file: head + "  b: {platform: darwin/arm64}\n"},
		{name: "a program for another processor", file: strings.Replace(head, "\nhosts:", "\nprograms: {linux/"+other+": ../weir}\nhosts:", 1)},
		{name: "an address that is not this machine's", file: strings.Replace(head, sshListen, "10.99.0.1:7622", 1)},
		{name: "no ssh on this machine", hosts: []string{a, b}, path: "/nowhere"},
		{name: "a wrong user", hosts: []string{a, f.at("b", "nosuch", "")}},
		{name: "a user without a shell", hosts: []string{a, f.at("b", "locked", "")}},
		{name: "a wrong host key", hosts: []string{b, "k: {ssh: wrong}"}},
		{name: "an unknown host key", hosts: []string{b, "k: {ssh: unknown}"}},
		{name: "a name that does not resolve", hosts: []string{a, "k: {ssh: nosuch.invalid}"}},
		{name: "a closed port", hosts: []string{a, "b: {ssh: \"ssh://root@" + f.nets.Addr("b") + ":2222\"}"}},
		{name: "a host that is not there", hosts: []string{a, "k: {ssh: root@10.77.0.99}"}},
		{name: "a jump host that refuses", hosts: []string{a, "k: {ssh: jumped}"}},
		{name: "a full disk", hosts: []string{a, f.at("b", "root", ", folder: /mnt/small")}},
		{name: "a folder with noexec", hosts: []string{a, f.at("b", "root", ", folder: /tmp/dir")}},
		{name: "a folder that does not exist", hosts: []string{a, f.at("b", "root", ", folder: /nosuch")}},
		{name: "a folder of another user", hosts: []string{a, f.at("b", "bench", ", folder: /usr")}},
		{name: "no way back", hosts: []string{a, f.at("c", "bench", "")}},
		{name: "another architecture", hosts: []string{a, c}, first: arm},
		{name: "Ctrl-C", hosts: []string{a, b}, when: "b: reached", cut: signal(syscall.SIGINT)},
		{name: "SIGTERM", hosts: []string{a, b}, when: "b: reached", cut: signal(syscall.SIGTERM)},
		{name: "weir fleet up is killed", args: startUp, hosts: []string{a, b}, when: "b: reached", cut: signal(syscall.SIGKILL)},
		{name: "weir run is killed", args: startRun, hosts: []string{a, b}, when: "b: reached", cut: signal(syscall.SIGKILL)},
		{name: "the process that keeps the connections is killed", args: startUp, hosts: []string{a, b}, when: "b: reached", cut: kill("internal hosts")},
		{name: "ssh is killed while it sends", hosts: []string{a, b}, when: "b: reached", cut: kill("weir-programs/$2", "@"+f.nets.Addr("b")+" ")},
		{name: "a host is turned off", hosts: []string{a, b}, when: "b: reached", cut: func(*proc) { f.off("b") }, last: func() { f.boot("b") }},
		{name: "a cable is pulled", hosts: []string{a, b}, when: "b: reached", cut: func(*proc) { f.nets.Cut("b") }, last: func() { f.nets.Mend("b") }},
	}
}

// endings are the rows of the table in docs/fleets.md: by what is broken, the exit code and weir's one line, in which … stands
// for any text.
func endings(t *testing.T) map[string][2]string {
	t.Helper()
	text := must.Get(os.ReadFile("../../docs/fleets.md"))(t)
	all := map[string][2]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| ([^|]+) \\| ([0-9]+|killed) \\| (?:`([^|]+)`)? *\\|$").FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = [2]string{m[2], m[3]}
	}
	return all
}

// progressLine is a step that a host did.
var progressLine = regexp.MustCompile(`(?m)^weir: [a-z]: .* \([0-9.]+ s\)\n`)

// Each start that fails says why in one line, exits with its code, and leaves no process, socket or file on any host, as the
// table in docs/fleets.md has it.
func TestBrokenStartsBySSHLeaveNothing(t *testing.T) {
	f := newSSHFleet(t)
	key := must.Get(os.ReadFile(f.path("b", "key.pub")))(t)
	known := must.Get(os.ReadFile(f.path("hub/root/.ssh/known_hosts")))(t)
	f.write("hub/root/.ssh/known_hosts", string(known)+"wrong "+string(key))
	f.write("hub/root/.ssh/config", "Host wrong unknown\n  HostName "+f.nets.Addr("a")+"\nHost wrong\n  HostKeyAlias wrong\nHost unknown\n  HostKeyAlias unknown\n"+
		"Host jumped\n  HostName "+f.nets.Addr("b")+"\n  ProxyJump root@"+f.nets.Addr("a")+":2222\n")
	want := endings(t)
	for i, way := range f.brokenStarts(t) {
		if needs.Less() && i%4 != 0 {
			continue
		}
		begun := time.Now()
		if way.first != nil {
			way.first()
		}
		if way.file != "" {
			f.write("hub/hosts.yaml", way.file)
		} else {
			f.hosts(way.hosts...)
		}
		if way.cut != nil { // while the program is sent
			for _, host := range []string{"a", "b"} {
				must.Do(t, os.RemoveAll(f.path(host, "root/.cache")))
			}
		}
		args := way.args
		if args == nil {
			args = [...][]string{startUp, startRun}[i%2]
		}
		program := append([]string{f.weir}, args...)
		if way.path != "" {
			program = append([]string{"/usr/bin/env", "PATH=" + way.path}, program...)
		}
		p := f.program(nil, program...)
		if way.cut != nil {
			p.until(t, way.when)
			way.cut(p)
		}
		code := strconv.Itoa(p.end(t))
		if code == "-1" {
			code = "killed"
		}
		if way.last != nil {
			way.last()
		}
		said := strings.TrimSpace(progressLine.ReplaceAllString(p.stderr.String(), ""))
		t.Logf("%.1f s: | %s | %s | `%s` |", time.Since(begun).Seconds(), way.name, code, said)
		row, ok := want[way.name]
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(row[1]), "…", ".*") + "$" // one line
		if !ok || row[0] != code || !regexp.MustCompile(pattern).MatchString(said) || p.stdout.String() != "" {
			t.Errorf("%s: exit code %s, and it says\n%s%s\ndocs/fleets.md has %s and\n%s", way.name, code, &p.stdout, said, row[0], row[1])
		}
		if code == "killed" || strings.HasSuffix(way.name, "is killed") { // the next start removes what is left of it here
			f.do(t, []Code{Usage, OK}, "fleet", "down", "--purge", f.hosts(f.at("a", "root", "")))
		}
		f.nothing(t, way.name)
		if left, err := filepath.Glob(f.path("hub/r*")); err != nil || len(left) > 0 && left[0] != f.path("hub/root") {
			t.Errorf("%s: %v is left, %v", way.name, left, err)
		}
	}
}
