package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// chronyd runs two chrony daemons that do not touch the host's clock: a reference, and one that follows it,
// which chronyc then queries. It skips the test without chrony.
func chronyd(t *testing.T) {
	t.Helper()
	var programs [2]string
	for i, name := range []string{"chronyd", "chronyc"} {
		path, err := exec.LookPath(name)
		if err != nil {
			needs.Host(t, "chrony", err)
		}
		programs[i] = path
	}
	port := must.Get(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	at := port.LocalAddr().(*net.UDPAddr).Port
	_ = port.Close() // chronyd's from here on
	dir := filepath.Join(t.TempDir(), "chrony")
	if err := os.Mkdir(dir, 0o700); err != nil { // a socket's folder is its owner's alone
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "sock")
	for name, text := range map[string]string{
		"reference": fmt.Sprintf("local stratum 10\nallow 127.0.0.1\nbindaddress 127.0.0.1\nport %d\nbindcmdaddress /\n", at),
		"follower":  fmt.Sprintf("server 127.0.0.1 port %d iburst minpoll -2 maxpoll 0\nport 0\nbindcmdaddress %s\n", at, socket),
	} {
		conf := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(conf, []byte(text+"cmdport 0\nuser root\npidfile "+conf+".pid\n"), 0o600))
		cmd := exec.Command(programs[0], "-x", "-d", "-f", conf)
		said := &watch{}
		cmd.Stdout, cmd.Stderr = said, said
		must.Do(t, startTied(cmd, func() error { return nil }))
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if t.Failed() {
				t.Logf("chronyd, %s:\n%s", name, said)
			}
		})
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s -h %s \"$@\"\n", programs[1], socket)
	must.Do(t, os.WriteFile(filepath.Join(dir, "chronyc"), []byte(script), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		got, err := host.Chrony(ctx)
		cancel()
		switch {
		case err == nil && got.Source == "127.0.0.1" && got.Bound() < 10*time.Millisecond:
			return
		case time.Now().After(end):
			needs.Host(t, "chrony", fmt.Sprintf("it follows nothing here: %+v, %v", got, err))
		}
	}
}

// ptp4l runs two ptp4l that do not touch the host's clock, in a network of their own: a master, and one that measures
// against it, which pmc then queries. It skips the test without linuxptp.
func ptp4l(t *testing.T) {
	t.Helper()
	pmc, err := exec.LookPath("pmc")
	if err == nil {
		_, err = exec.LookPath("ptp4l")
	}
	if err != nil {
		needs.Host(t, "ptp", err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"master": "priority1 100\nlogSyncInterval -3\nlogAnnounceInterval -2", "slave": "slaveOnly 1"} {
		conf := filepath.Join(dir, name)
		text = fmt.Sprintf("[global]\ntime_stamping software\nfree_running 1\nlogMinDelayReqInterval -3\nuds_address %s.sock\n%s\n", conf, text)
		must.Do(t, os.WriteFile(conf, []byte(text), 0o600))
	}
	cmd := exec.Command("unshare", "-n", "-p", "--fork", "--kill-child", "sh", "-ec",
		`ip link add ptpm type veth peer name ptps; ip link set ptpm up; ip link set ptps up
		ptp4l -2 -m -f "$0/master" -i ptpm & exec ptp4l -2 -m -f "$0/slave" -i ptps`, dir)
	said := &watch{}
	cmd.Stdout, cmd.Stderr = said, said
	must.Do(t, startTied(cmd, func() error { return nil }))
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // and so its child, the first process of the namespace
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("ptp4l:\n%s", said)
		}
	})
	script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" -s %s/slave.sock\n", pmc, dir)
	must.Do(t, os.WriteFile(filepath.Join(dir, "pmc"), []byte(script), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		got, err := host.PTP(t.Context())
		switch {
		case err == nil && !got.Steers && got.Bound() < 10*time.Millisecond:
			return
		case time.Now().After(end):
			needs.Host(t, "ptp", fmt.Sprintf("it follows nothing here: %+v, %v\n%s", got, err, said))
		}
	}
}

// A real chronyd, and then a real ptp4l, speaks for three agents. One agent's clock is 25 ms ahead, and so is its wall
// clock: the exchanges and the daemon agree. Another's wall clock is 25 ms ahead, but the daemon vouches for it: a
// contradiction. The third reads the coordinator's own clock.
func TestFleetClocksAgreeWithDaemons(t *testing.T) {
	for name, start := range map[string]func(*testing.T){"chrony": chronyd, "ptp4l": ptp4l} {
		t.Run(name, func(t *testing.T) {
			start(t)
			agreesWithDaemon(t, name)
		})
	}
}

func agreesWithDaemon(t *testing.T, daemon string) {
	t.Helper()
	server := meeting(t)
	where := "nats://" + strings.TrimPrefix(server, "nats://")
	agents(t, where, map[string]string{"apart": "constant=25ms", "wall": "wall=25ms", "own": ""})
	dir := t.TempDir()
	stdout, stderr := &watch{}, &watch{}
	code := Main(t.Context(), World{
		Args: []string{
			"run", "--fleet", "3", "--nats", where, "--driver", "jetstream", "--address", server, "--placement", "{producers: [apart, wall], consumers: [own]}",
			"--rate", "200/s", "--producers", "2", "--warmup", "500ms", "--measure", "2s", "--drain", "60s", "--out", "r", "--quiet",
		},
		Env:    func(name string) (string, bool) { return filepath.Join(dir, "fleet"), name == admission.VariableDir },
		Stdout: stdout, Stderr: stderr, Dir: dir, Drivers: all.Definitions(),
	})
	if code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	saved := must.Get(result.Read(filepath.Join(dir, "r")))(t)
	for _, a := range saved.Result.Agents {
		k := a.Clock.Daemon
		switch {
		case a.Name == "own":
			if k != nil || !a.Clock.Same {
				t.Errorf("own: %+v; want no word of a daemon's on the coordinator's own clock", a.Clock)
			}
		case k == nil || k.BoundNS <= 0 || k.By != daemon:
			t.Errorf("%s: %s says %+v; want its bound", a.Name, daemon, k)
		case a.Name == "apart":
			if !k.Agrees || k.ApartNS != 0 {
				t.Errorf("apart: %+v", k)
			}
		case k.Agrees || a.Clock.BoundNS == nil || k.ApartNS > 25e6 || k.ApartNS < 25e6-2*(k.BoundNS+*a.Clock.BoundNS):
			t.Errorf("wall: %+v; want 25 ms less the bounds", k)
		}
	}
	var events []string
	for ev, err := range saved.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == "clock" {
			events = append(events, ev.Text)
		}
	}
	if len(events) != 1 || !strings.HasPrefix(events[0], "wall: its measured offset differs from "+daemon+"'s view of both wall clocks, by ") {
		t.Errorf("events %q", events)
	}
	for _, c := range saved.Result.Verdict.Checks {
		if c.Name == "clock" && (c.Status == result.Valid || !strings.Contains(c.Value, daemon+" contradicts this for wall, by up to ")) {
			t.Errorf("%+v", c)
		}
	}
}
