package cli

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// Runs every line of the documents' sh code blocks, those of one document in order and in one folder, as a
// reader would. A line may end in "# exits N", or N|M.
func TestTheCommandsInDocumentsRun(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	root := must.Get(filepath.Abs("../.."))(t)
	ran := 0
	for _, doc := range documents(t, root) {
		text := must.Get(os.ReadFile(doc))(t)
		lines := commandsOf(t, doc, string(text))
		if len(lines) == 0 {
			continue
		}
		ran += len(lines)
		name, _ := filepath.Rel(root, doc)
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must.Do(t, os.CopyFS(filepath.Join(dir, "docs", "examples"), os.DirFS(filepath.Join(root, "docs", "examples"))))
			for _, line := range lines {
				follow(t, root, dir, line)
			}
		})
	}
	if ran < 15 {
		t.Errorf("found %d commands: the documents have lost theirs, or this test its eyes", ran)
	}
}

// Readers go from README.md to the tour, and from there to a task's page. Each --out and -o on the way must
// be new, since an existing folder is an error.
func TestDocumentsUseDistinctFolders(t *testing.T) {
	t.Parallel()
	root := must.Get(filepath.Abs("../.."))(t)
	tour := must.Get(os.ReadFile(filepath.Join(root, "docs", "README.md")))(t)
	docs := []string{"README.md", "docs/README.md"}
	for _, m := range regexp.MustCompile(`\]\((\w+\.md)\)`).FindAllStringSubmatch(string(tour), -1) {
		if doc := "docs/" + m[1]; !slices.Contains(docs, doc) {
			docs = append(docs, doc)
		}
	}
	out, first := regexp.MustCompile(` (?:--out|-o)[ =](\S+)`), map[string]string{}
	for _, doc := range docs {
		text := must.Get(os.ReadFile(filepath.Join(root, doc)))(t)
		for _, line := range commandsOf(t, doc, string(text)) {
			command, _, _ := strings.Cut(line, " # ")
			for _, m := range out.FindAllStringSubmatch(command, -1) {
				if before, taken := first[m[1]]; taken {
					t.Errorf("%s: %q writes %s, which a command of %s has made already", doc, command, m[1], before)
				}
				first[m[1]] = doc
			}
		}
	}
	if len(first) < 20 {
		t.Errorf("found %d outputs in %v: the documents have lost theirs, or this test its eyes", len(first), docs)
	}
}

func TestGateDocumentShowsTheGateFile(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile("../../docs/gate.md"))(t)
	gate := must.Get(os.ReadFile("../../docs/examples/gate.yaml"))(t)
	if i := strings.Index(string(gate), "weir: 1\n"); i < 0 || !strings.Contains(string(page), "```yaml\n"+string(gate)[i:]+"```\n") {
		t.Errorf("docs/gate.md does not show docs/examples/gate.yaml:\n%s", gate)
	}
}

// documents are the Markdown files that a reader of the repository comes upon.
func documents(t *testing.T, root string) []string {
	t.Helper()
	var docs []string
	must.Do(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "results"):
			return filepath.SkipDir
		case strings.HasSuffix(p, ".md"):
			docs = append(docs, p)
		}
		return nil
	}))
	return docs
}

// commandsOf returns the lines of the blocks marked sh. A block without a mark is
// output; a command in one would not be tested, and is refused.
func commandsOf(t *testing.T, doc, text string) []string {
	t.Helper()
	var found []string
	for i, block := range strings.Split(text, "```") {
		if i%2 == 0 {
			continue
		}
		info, body, _ := strings.Cut(block, "\n")
		body = strings.ReplaceAll(body, "\\\n", " ")
		for line := range strings.Lines(body) {
			line = strings.TrimSpace(line)
			switch {
			case info == "sh" && line != "" && !strings.HasPrefix(line, "#"):
				found = append(found, line)
			case info == "" && regexp.MustCompile(`^(\$ )?(weir (run|report|drivers|doctor)|go run|make) `).MatchString(line):
				t.Errorf("%s: %q stands in a block that is not marked sh, so that no test runs it", doc, line)
			}
		}
	}
	return found
}

// follow runs one line of a document in dir. Runs are shortened by the environment,
// which a flag in the document wins over; the example of a suite is short already,
// and has a profile, which measure cannot stand beside.
func follow(t *testing.T, root, dir, line string) {
	t.Helper()
	command, comment, _ := strings.Cut(line, " # ")
	want := []int{int(OK), int(Invalid)} // so short a run on a busy host may well be invalid
	if m := regexp.MustCompile(`exits ([\d|]+)`).FindStringSubmatch(comment); m != nil {
		want = nil
		for code := range strings.SplitSeq(m[1], "|") {
			n, _ := strconv.Atoi(code)
			want = append(want, n)
		}
	}
	if _, err := exec.LookPath("python3"); err != nil && strings.HasPrefix(command, "python3 ") {
		t.Run(command, func(t *testing.T) { needs.Host(t, "python3", err) })
		return
	}
	command = testable(command, root)
	before := filepath.Join(t.TempDir(), "before")
	must.Do(t, os.CopyFS(before, os.DirFS(dir)))
	code, out := try(t, dir, command)
	// A host that stands still for seconds makes core NATS drop, and a system seem gone.
	for again := 0; again < 2 && !slices.Contains(want, code) && (code == int(Lost) || code == int(Unreachable)); again++ {
		t.Logf("%s: exit %d; once more\n%s", line, code, out)
		must.Do(t, errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(before))))
		code, out = try(t, dir, command)
	}
	if !slices.Contains(want, code) {
		t.Errorf("%s: exit %d; want one of %v\n%s", line, code, want, out)
	}
}

// try runs a command in dir and returns its exit code and what it said.
func try(t *testing.T, dir, command string) (code int, out []byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+withWeir(t)+string(os.PathListSeparator)+os.Getenv("PATH"), "TMPDIR="+t.TempDir(), broker.VariableCache+"="+filepath.Join(dir, "cache"), "WEIR_FLEET_DIR="+filepath.Join(dir, "state"))
	if !strings.Contains(command, "several.yaml") {
		cmd.Env = append(cmd.Env, "WEIR_WARMUP=100ms")
		if !strings.Contains(command, "--measure") && !strings.Contains(command, "--messages") {
			cmd.Env = append(cmd.Env, "WEIR_MEASURE=300ms")
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatalf("%s: %v", command, err)
	}
	return cmd.ProcessState.ExitCode(), out
}

// testable turns a line into what a test can run in seconds and without installing
// anything: weir is this binary, a target of make is only looked up, and so is
// what Go builds.
func testable(line, root string) string {
	line = strings.TrimPrefix(line, "go run ./cmd/")
	if rest, ok := strings.CutPrefix(line, "weir-all "); ok {
		line = "weir " + rest
	}
	switch first, rest, _ := strings.Cut(line, " "); first {
	case "go":
		pkg := "./cmd/weir"
		if m := regexp.MustCompile(`^run (\./\S+)`).FindStringSubmatch(rest); m != nil {
			pkg = m[1]
		}
		return "go -C " + root + " list " + pkg + " >/dev/null && : " + rest
	case "make":
		return "make -n -C " + root + " " + rest
	}
	if strings.HasPrefix(line, "weir calibrate") {
		return "weir calibrate --help" // it has tests of its own, and takes half a minute
	}
	if strings.HasPrefix(line, "weir serve ") && !strings.Contains(line, "--publish") {
		at := "" // a port that is free here
		if !strings.Contains(line, "--listen") {
			at = " --listen 127.0.0.1:0"
		}
		return "timeout -s INT 3 " + line + at + "; test $? = 124" // it serves until it is ended
	}
	// What starts real servers installs them first; that has tests of its own, too.
	// A child needs its system, and a server of the reader's is not here.
	elsewhere := strings.Contains(line, "--option command=") || strings.Contains(line, "--address 127.0.0.1:")
	real := strings.Contains(line, "--start process") || strings.Contains(line, "equal-durability.yaml")
	if strings.HasPrefix(line, "weir run") && (real || elsewhere) {
		return line + " --explain"
	}
	if regexp.MustCompile(`^weir broker (up|install) `).MatchString(line) {
		return "weir broker --help"
	}
	// What a document measures for seconds, so that its reader gets figures worth reading, works the same in one.
	return regexp.MustCompile(`--(measure|longest) \d+s`).ReplaceAllString(line, "--$1 1s")
}

// withWeir returns a folder that holds this test binary as weir.
func withWeir(t *testing.T) string {
	t.Helper()
	self := must.Get(os.Executable())(t)
	dir := t.TempDir()
	must.Do(t, os.Symlink(self, filepath.Join(dir, "weir")))
	return dir
}
