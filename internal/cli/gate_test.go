package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
)

// Runs the commands of the GitHub Action and the GitLab job in deploy/ci, except install, upload and
// comment: the report exists even if an objective fails, and the exit code is weir's.
func TestTheGatesOfBuildServers(t *testing.T) {
	t.Parallel()
	for _, server := range []struct {
		name  string
		steps func(t *testing.T) []string // each a shell of its own
		wrote []string
	}{
		{"github", actionSteps, []string{"weir-result/report.html", "weir.md", "summary", "output"}},
		{"gitlab", jobSteps, []string{"weir-result/report.html", "weir.md", "weir.xml"}},
	} {
		for _, run := range []struct {
			name, slo string
			code      int
			wrote     bool
		}{
			{"an objective that is kept", "lost == 0", int(OK), true},
			{"an objective that fails", "sent.rate >= 1M/s", int(Missed), true},
			{"a scenario that is wrong", "nonsense", int(Usage), false},
		} {
			t.Run(server.name+": "+run.name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				file := "weir: 1\nsystem: {driver: chan}\nload: {rate: 100/s}\nwarmup: 0s\nmeasure: 300ms\nslo: [\"" + run.slo + "\"]\n"
				must.Do(t, os.WriteFile(filepath.Join(dir, "gate.yaml"), []byte(file), 0o644))
				for _, name := range []string{"weir-result/report.html", "weir.md"} { // of a job before
					path := filepath.Join(dir, name)
					must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("old"), 0o644)))
				}
				code, said := steps(t, dir, server.steps(t), "SCENARIO=gate.yaml", "ARGUMENTS=--quiet --no-color")
				if code != run.code && (run.code == int(Usage) || code != int(Invalid)) { // a busy host
					t.Errorf("exit code %d; want %d\n%s", code, run.code, said)
				}
				for _, name := range server.wrote {
					if b, err := os.ReadFile(filepath.Join(dir, name)); run.wrote && err != nil || string(b) == "old" {
						t.Errorf("%s: %v, %d bytes\n%s", name, err, len(b), said)
					}
				}
				if md, err := os.ReadFile(filepath.Join(dir, "weir.md")); run.wrote && (err != nil || !strings.Contains(string(md), run.slo[:4])) {
					t.Errorf("the comment does not name the objective: %v\n%s", err, md)
				}
			})
		}
	}
}

// Runs the example workflow's own steps and the action's in order, on a server started by an earlier step:
// the figures must be that server's, not of one that weir starts.
func TestTheWorkflowGatesTheBuildUnderTest(t *testing.T) {
	t.Parallel()
	var flow struct {
		Jobs map[string]struct {
			Steps []struct {
				Run, Uses string
				With      map[string]string
			}
		}
	}
	ofDeploy(t, "github/example.yml", &flow)
	dir := t.TempDir()
	server := natsdtest.Start(t, func(o *natsserver.Options) { o.JetStream, o.StoreDir, o.ServerName = true, t.TempDir(), "the-build" })
	gate := must.Get(os.ReadFile("../../docs/examples/gate.yaml"))(t)
	// The build is there when the step has ended.
	at := strings.TrimPrefix(server.ClientURL(), "nats://")
	script := "#!/bin/sh\nset -e\nexec 3<>/dev/tcp/" + strings.Replace(at, ":", "/", 1) + "\ntouch started\n"
	script = strings.Replace(script, "/bin/sh", "/usr/bin/env bash", 1)
	must.Do(t, errors.Join(os.WriteFile(filepath.Join(dir, "gate.yaml"), gate, 0o644), os.WriteFile(filepath.Join(dir, "start-broker.sh"), []byte(script), 0o755)))
	code, said, with := 0, "", map[string]string{}
	for _, step := range flow.Jobs["gate"].Steps {
		commands := []string{step.Run}
		switch {
		case strings.HasPrefix(step.Uses, "actions/checkout"):
			continue
		case strings.HasPrefix(step.Uses, "weirmq/weir/deploy/ci/github"):
			commands, with = actionSteps(t), step.With
		case step.Uses != "":
			t.Fatalf("no test does %s", step.Uses)
		}
		done, out := steps(t, dir, commands, "SCENARIO="+with["scenario"],
			"ARGUMENTS="+strings.Replace(with["arguments"], "nats://127.0.0.1:4222", server.ClientURL(), 1)+" --warmup 100ms --measure 1s --quiet --no-color")
		code, said = max(code, done), said+out
	}
	busy := code == int(Invalid) || code == int(Missed) && strings.Contains(said, "while the host was disturbed")
	if code != int(OK) && !busy {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err != nil {
		t.Errorf("the step before did not start the build: %v\n%s", err, said)
	}
	r, err := os.ReadFile(filepath.Join(dir, "weir-result", "scenario.yaml"))
	if err != nil || !strings.Contains(string(r), at) {
		t.Errorf("%v, the run was not at %s:\n%s\n%s", err, at, r, said)
	}
	if varz, err := server.Varz(nil); err != nil || varz.InMsgs < 400 {
		t.Errorf("%v, the server got %d messages", err, varz.InMsgs)
	}
}

// steps runs commands as a build server does, each in a shell of its own, until one fails.
func steps(t *testing.T, dir string, commands []string, env ...string) (code int, said string) {
	t.Helper()
	for _, command := range commands {
		cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", command)
		cmd.Dir = dir
		cmd.Env = slices.Concat(os.Environ(), env, []string{
			"PATH=" + withWeir(t) + string(os.PathListSeparator) + os.Getenv("PATH"),
			"GITHUB_OUTPUT=" + filepath.Join(dir, "output"), "GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary"), "CODE=" + outputCode(dir),
		})
		out, err := cmd.CombinedOutput()
		said += string(out)
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return exit.ExitCode(), said
		}
		must.Do(t, err)
	}
	return 0, said
}

// outputCode is what the step "run" of the action has put out.
func outputCode(dir string) string {
	b, _ := os.ReadFile(filepath.Join(dir, "output")) // none before it
	for line := range strings.Lines(string(b)) {
		if code, ok := strings.CutPrefix(strings.TrimSpace(line), "code="); ok {
			return code
		}
	}
	return ""
}

// actionSteps returns the commands of the action that need no GitHub.
func actionSteps(t *testing.T) (steps []string) {
	var action struct {
		Runs struct{ Steps []struct{ Name, Run string } }
	}
	ofDeploy(t, "github/action.yml", &action)
	for _, s := range action.Runs.Steps {
		if s.Name == "run" || s.Name == "report" || s.Name == "exit" {
			steps = append(steps, s.Run)
		}
	}
	if len(steps) != 3 {
		t.Fatalf("the action has %d of the steps run, report and exit", len(steps))
	}
	return steps
}

// jobSteps returns the script of the job, which one shell runs.
func jobSteps(t *testing.T) []string {
	var jobs map[string]struct{ Script []string }
	ofDeploy(t, "gitlab.yml", &jobs)
	script := jobs[".weir"].Script
	if len(script) < 3 {
		t.Fatalf("the job has the script %q", script)
	}
	return []string{strings.Join(script, "\n")}
}

func ofDeploy(t *testing.T, name string, into any) {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join("../../deploy/ci", name)))(t)
	must.Do(t, yaml.Unmarshal(b, into))
}
