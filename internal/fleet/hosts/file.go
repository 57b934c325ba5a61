package hosts

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/placement"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/userfile"
)

// mostHosts limits a file; each host has an ssh process or two here.
const mostHosts = 512

// A File is a hosts.yaml: which hosts there are, and what their agents may do.
type File struct {
	Listen   string // where agents reach this host; "": see admission.Reachable
	Hosts    []Host // in the order of the file
	programs map[string]string
}

// A Host is one agent on one host.
type Host struct {
	Name     string // of the agent
	SSH      string // as ssh takes it
	Folder   string // for programs there; "": see find
	platform string // as Go names it; "": the host says
	args     []string
}

// keys of a file, and of one of its hosts.
var (
	fileKeys = []string{"weir-hosts", "listen", "programs", "hosts"}
	hostKeys = []string{"ssh", "folder", "platform", "labels", "allow", "bind", "allow-env", "allow-file", "fifo"}
)

// What destinations and folders may be. They become arguments of programs: none may look like an option, nor
// mean anything to a shell.
var (
	destination = regexp.MustCompile(`^[A-Za-z0-9_\[][A-Za-z0-9_.@:/%\[\]-]*$`)
	folderForm  = regexp.MustCompile(`^/[A-Za-z0-9_.@+/-]*$`)
	platforms   = regexp.MustCompile(`^(linux|darwin)/(amd64|arm64)$`)
)

const (
	allowedSSH       = "a destination as ssh takes it, such as user@host or ssh://user@host:2222"
	allowedPlatforms = "linux/amd64, linux/arm64, darwin/amd64, darwin/arm64"
)

// Parse reads the file with this name and text; path makes a path in it one of this process. Its error is tree.Faults, with each fault that can be seen without
// connecting to a host. It opens the programs that the file names.
func Parse(name string, text []byte, path func(string) string) (*File, error) {
	root, faults := tree.Parse(name, text)
	for i := range faults {
		faults[i].Message = strings.NewReplacer("a scenario begins with weir: 1", "it begins with weir-hosts: 1", "with `scenarios:` for several scenarios", "a file", "a scenario", "such a file").Replace(faults[i].Message)
	}
	if root == nil {
		return nil, faults.Done()
	}
	r := &reader{faults}
	f := &File{programs: map[string]string{}}
	r.keys(root, "", fileKeys)
	if v := root.Field("weir-hosts"); v == nil || !v.Is("1") {
		r.Add(root.At, "weir-hosts", "is missing, or not 1 (1, the version of the format)")
	}
	if v := root.Field("listen"); v != nil {
		f.Listen = r.text(v, "listen")
		if _, _, err := admission.Reachable(f.Listen); f.Listen != "" && err != nil {
			r.Add(v.At, "listen", "%v", err)
		}
	}
	r.programs(root, f, path)
	r.hosts(root, f)
	if err := r.Done(); err != nil {
		return nil, err
	}
	return f, nil
}

// A reader collects the faults of a file.
type reader struct{ tree.Faults }

// keys refuses unknown keys.
func (r *reader) keys(n *tree.Node, path string, allowed []string) {
	for _, f := range n.Fields {
		if !slices.Contains(allowed, f.Key) {
			r.Add(f.At, tree.Join(path, f.Key), "unknown key (%s)", strings.Join(allowed, ", "))
		}
	}
}

// text reads a text; "" is a fault.
func (r *reader) text(n *tree.Node, path string) string {
	if n.Shape != tree.Text || strings.TrimSpace(n.Text) == "" {
		r.Add(n.At, path, "is %s (a text)", n.Shape)
		return ""
	}
	return n.Text
}

// texts reads a text or a list of texts.
func (r *reader) texts(n *tree.Node, path string) (all []string) {
	if n.Shape != tree.List {
		return []string{r.text(n, path)}
	}
	for i, item := range n.Items {
		all = append(all, r.text(item, fmt.Sprintf("%s[%d]", path, i)))
	}
	return all
}

// programs reads where the programs for other platforms are.
func (r *reader) programs(root *tree.Node, f *File, path func(string) string) {
	v := root.Field("programs")
	if v == nil {
		return
	}
	if v.Shape != tree.Mapping {
		r.Add(v.At, "programs", "is %s (a mapping of platforms, such as linux/arm64: ./weir-arm64)", v.Shape)
		return
	}
	for _, x := range v.Fields {
		at := tree.Join("programs", x.Key)
		if !platforms.MatchString(x.Key) {
			r.Add(x.At, at, "is not a platform (%s)", allowedPlatforms)
			continue
		}
		if file := r.text(x.Value, at); file != "" {
			if err := runsOn(path(file), x.Key); err != nil {
				r.Add(x.Value.At, at, "%v (a weir built for %s)", err, x.Key)
			}
			f.programs[x.Key] = path(file)
		}
	}
}

// runsOn refuses a file that is no program for a platform, as far as its header tells.
func runsOn(path, platform string) error {
	b, err := userfile.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case err != nil:
		return err
	}
	defer func() { _ = b.Close() }() // only read
	if !strings.HasPrefix(platform, "linux/") {
		return nil
	}
	e, err := elf.NewFile(b)
	if err != nil {
		return errors.New("is not a program for Linux")
	}
	if want := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}[platform]; e.Machine != want {
		return fmt.Errorf("is for another processor: %v", e.Machine)
	}
	return nil
}

// hosts reads the hosts.
func (r *reader) hosts(root *tree.Node, f *File) {
	v := root.Field("hosts")
	if v == nil || v.Shape != tree.Mapping || len(v.Fields) == 0 || len(v.Fields) > mostHosts {
		at := root.At
		if v != nil {
			at = v.At
		}
		r.Add(at, "hosts", "is missing or does not fit (a mapping of 1 to %d hosts by the names of their agents)", mostHosts)
		return
	}
	by := map[string]string{}
	for _, x := range v.Fields {
		at := tree.Join("hosts", x.Key)
		if err := placement.CheckName(x.Key); err != nil {
			r.Add(x.At, at, "%v", err)
			continue
		}
		n := x.Value
		if n.Shape != tree.Mapping && n.Shape != tree.Empty {
			r.Add(n.At, at, "is %s (a mapping of %s)", n.Shape, strings.Join(hostKeys, ", "))
			continue
		}
		h := r.host(x.Key, n, at)
		where, place := x.At, at
		if s := n.Field("ssh"); s != nil {
			where, place = s.At, tree.Join(at, "ssh")
		}
		if other, twice := by[h.SSH]; twice {
			r.Add(where, place, "is the same host as %s (each host once)", other)
		}
		by[h.SSH] = x.Key
		if p := n.Field("platform"); p != nil && h.platform != "" && f.program(h.platform) == "" {
			r.Add(p.At, tree.Join(at, "platform"), "there is no program for %s (a line in programs, such as %[1]s: ./weir)", h.platform)
		}
		f.Hosts = append(f.Hosts, h)
	}
}

// program is the path of the program for a platform; "": there is none. "." is this program itself.
func (f *File) program(platform string) string {
	if path, ok := f.programs[platform]; ok {
		return path
	}
	if platform == here() {
		return own
	}
	return ""
}

// own stands for this program's path.
const own = "."

func here() string { return runtime.GOOS + "/" + runtime.GOARCH }

// host reads one host.
func (r *reader) host(name string, n *tree.Node, path string) Host {
	h := Host{Name: name, SSH: name, args: []string{"--name", name}}
	r.keys(n, path, hostKeys)
	for _, x := range n.Fields {
		at := tree.Join(path, x.Key)
		add := func(values []string) {
			for _, v := range values {
				h.args = append(h.args, "--"+x.Key, v)
			}
		}
		switch x.Key {
		case "ssh":
			if h.SSH = r.text(x.Value, at); h.SSH != "" && !destination.MatchString(h.SSH) {
				r.Add(x.Value.At, at, "is not a destination (%s)", allowedSSH)
			}
		case "folder":
			if h.Folder = r.text(x.Value, at); h.Folder != "" && !folderForm.MatchString(h.Folder) {
				r.Add(x.Value.At, at, "is not a folder (an absolute path of letters, digits and . _ @ + -)")
			}
		case "platform":
			if h.platform = r.text(x.Value, at); h.platform != "" && !platforms.MatchString(h.platform) {
				r.Add(x.Value.At, at, "is not a platform (%s)", allowedPlatforms)
				h.platform = ""
			}
		case "bind":
			if h.args = append(h.args, "--bind", r.text(x.Value, at)); net.ParseIP(x.Value.Text) == nil {
				r.Add(x.Value.At, at, "is not an address (an IP address of the host)")
			}
		case "fifo":
			switch on, err := strconv.ParseBool(x.Value.Text); {
			case err != nil:
				r.Add(x.Value.At, at, "is not true or false (true, false)")
			case on:
				h.args = append(h.args, "--fifo")
			}
		case "labels":
			h.args = append(h.args, r.labels(x.Value, at)...)
		case "allow":
			all := r.texts(x.Value, at)
			for _, v := range all {
				if v != "broker" && v != "faults" && v != "" {
					r.Add(x.Value.At, at, "%q is not known (broker, faults)", v)
				}
			}
			add(all)
		case "allow-env", "allow-file":
			add(r.texts(x.Value, at))
		}
	}
	return h
}

// labels reads an agent's labels.
func (r *reader) labels(n *tree.Node, path string) (args []string) {
	if n.Shape != tree.Mapping {
		r.Add(n.At, path, "is %s (a mapping, such as {role: producer})", n.Shape)
		return nil
	}
	for _, x := range n.Fields {
		text := x.Key + "=" + r.text(x.Value, tree.Join(path, x.Key))
		if _, err := placement.ParseLabel(text); err != nil {
			r.Add(x.At, tree.Join(path, x.Key), "%v", err)
		}
		args = append(args, "--label", text)
	}
	return args
}
