package broker

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Patterns for names and texts of a recipe.
var (
	recipeName  = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)
	portName    = regexp.MustCompile(`^[a-z][a-z0-9_]{0,23}$`)
	versionText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+~:_-]{0,63}$`)
	packageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,99}$`)
	releaseName = regexp.MustCompile(`^[a-z]+$`)
	moduleName  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._~/-]{0,199}$`)
	sha256Form  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	imageName   = regexp.MustCompile(`^[a-z0-9][a-z0-9._/:-]*:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}(@sha256:[0-9a-f]{64})?$`)
	coordinates = regexp.MustCompile(`^[A-Za-z0-9._-]+(:[A-Za-z0-9._-]+){2,4}$`)
	variable    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
	userName    = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
)

// Values for the nodes that a part runs on.
const (
	onAll     = "all"
	onFirst   = "first"
	onOthers  = "others"
	onAddress = "address"
)

// checking collects the faults of one recipe.
type checking struct {
	source string
	body   ast.Node
	recipe *Recipe
	errs   []error
}

// fault records a fault at a path of keys (string) and indices (int).
func (c *checking) fault(message string, at ...any) {
	e := &RecipeError{Source: c.source, Path: pathText(at), Message: message}
	if t := find(c.body, at).GetToken(); t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	c.errs = append(c.errs, e)
}

// match checks a required text.
func (c *checking) match(text string, form *regexp.Regexp, allowed string, at ...any) {
	switch {
	case text == "":
		c.fault("is missing ("+allowed+")", at...)
	case !form.MatchString(text):
		c.fault(fmt.Sprintf("%q does not fit (%s)", text, allowed), at...)
	}
}

// oneOf checks an optional word.
func (c *checking) oneOf(text string, words []string, at ...any) {
	if text != "" && !slices.Contains(words, text) {
		c.fault(fmt.Sprintf("%q is not known (%s)", text, strings.Join(words, ", ")), at...)
	}
}

// pathText formats a path for people.
func pathText(at []any) string {
	var b strings.Builder
	for _, p := range at {
		switch p := p.(type) {
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(p)
		case int:
			fmt.Fprintf(&b, "[%d]", p)
		}
	}
	return b.String()
}

// find returns the node at a path, or the deepest existing node on the way to it.
func find(n ast.Node, at []any) ast.Node {
	for _, p := range at {
		var next ast.Node
		switch p := p.(type) {
		case string:
			var members []*ast.MappingValueNode
			switch m := n.(type) {
			case *ast.MappingNode:
				members = m.Values
			case *ast.MappingValueNode:
				members = []*ast.MappingValueNode{m}
			}
			for _, v := range members {
				if v.Key.GetToken() != nil && v.Key.GetToken().Value == p {
					next = v.Value
				}
			}
		case int:
			if s, ok := n.(*ast.SequenceNode); ok && p < len(s.Values) {
				next = s.Values[p]
			}
		}
		if next == nil || next.GetToken() == nil {
			break
		}
		n = next
	}
	return n
}

// all runs every check.
func (c *checking) all() {
	r := c.recipe
	if r.Format != recipeFormat {
		c.fault(fmt.Sprintf("is %d (%d)", r.Format, recipeFormat), "recipe")
	}
	c.match(r.Name, recipeName, "a name of small letters, digits and -", "name")
	if strings.TrimSpace(r.Title) == "" {
		c.fault("is missing (the system's name as its vendor writes it)", "title")
	}
	c.match(r.Version, versionText, "the version to install, or distribution", "version")
	for i, p := range r.Platforms {
		c.oneOf(p, []string{"linux", "darwin", "linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}, "platforms", i)
	}
	if len(r.Nodes) == 0 {
		c.fault("is missing (a list of numbers of nodes)", "nodes")
	}
	for i, n := range r.Nodes {
		if n < 1 || n > maxNodes || i > 0 && n <= r.Nodes[i-1] {
			c.fault(fmt.Sprintf("%d does not fit (ascending numbers from 1 to %d)", n, maxNodes), "nodes", i)
		}
	}
	for i, n := range r.Needs {
		c.match(n.Program, packageName, "the name of a program", "needs", i, "program")
		if n.Version != "" && number(n.Version) == nil {
			c.fault(fmt.Sprintf("%q is not a version (numbers with dots)", n.Version), "needs", i, "version")
		}
	}
	if r.Install != nil {
		c.install(r.Install)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		c.setting(name, r.Settings[name])
	}
	c.parts()
	c.oneOf(r.Connect.Nodes, []string{onAll, onFirst}, "connect", "nodes")
	if r.Connect.Address == "" {
		c.fault("is missing (a template of what the option address of the driver takes)", "connect", "address")
	}
	for d, options := range r.Connect.Options {
		if _, ok := options["address"]; ok {
			c.fault("is set by connect.address (another option)", "connect", "options", d, "address")
		}
	}
	if len(c.errs) == 0 {
		c.layouts()
	}
}

// versions checks the other versions of a recipe, which must differ from its own; replaced is how many
// texts of its source contain the version.
func (c *checking) versions(own string, replaced int) {
	for i, v := range c.recipe.Versions {
		c.match(v, versionText, "a version", "versions", i)
		if v == own || slices.Contains(c.recipe.Versions[:i], v) {
			c.fault(fmt.Sprintf("%q is there twice (versions that differ)", v), "versions", i)
		}
	}
	if len(c.recipe.Versions) > 0 && replaced == 0 {
		c.fault("has no effect, because install does not use the version (write {{.Version}} there)", "versions")
	}
}

func (c *checking) setting(name string, s Setting) {
	if !recipeName.MatchString(name) {
		c.fault("is not a name of a setting (small letters, digits and -)", "settings", name)
	}
	if s.Help == "" {
		c.fault("is missing (a sentence)", "settings", name, "help")
	}
	if err := s.check(s.Default); err != nil {
		c.fault(err.Error(), "settings", name, "default")
	}
}

// install checks that there is exactly one source, and its content.
func (c *checking) install(in *Install) {
	n := 0
	if s := in.Go; s != nil {
		n++
		c.match(s.Module, moduleName, "a module's path", "install", "go", "module")
		c.match(s.Version, versionText, "an exact version such as v1.2.3", "install", "go", "version")
		c.programs(s.Programs, true, "install", "go", "programs")
		c.sources(s.Files)
	}
	if s := in.Maven; s != nil {
		n++
		for i, a := range s.Artifacts {
			c.match(a, coordinates, "group:artifact:version", "install", "maven", "artifacts", i)
		}
		for i, a := range s.Archives {
			if c.match(a, coordinates, "group:artifact:version:type", "install", "maven", "archives", i); strings.Count(a, ":") < 3 {
				c.fault(fmt.Sprintf("%q has no type (group:artifact:version:type, such as tar.gz)", a), "install", "maven", "archives", i)
			}
		}
		for a, sum := range s.SHA256 {
			if !slices.Contains(s.Archives, a) {
				c.fault(fmt.Sprintf("%q is not an archive of the recipe (%s)", a, strings.Join(s.Archives, ", ")), "install", "maven", "sha256", a)
			}
			c.match(sum, sha256Form, "64 digits of hex, in lower case", "install", "maven", "sha256", a)
		}
		if len(s.Artifacts)+len(s.Archives) == 0 {
			c.fault("holds nothing (artifacts, archives)", "install", "maven")
		}
		c.programs(s.Programs, false, "install", "maven", "programs")
	}
	if s := in.Apt; s != nil {
		n++
		if len(s.Packages) == 0 {
			c.fault("is missing (a list of packages)", "install", "apt", "packages")
		}
		for i, p := range s.Packages {
			c.match(p, packageName, "a package's name", "install", "apt", "packages", i)
		}
		c.programs(s.Programs, true, "install", "apt", "programs")
		if s.Release != "" {
			c.match(s.Release, releaseName, "the name of a release of Debian", "install", "apt", "release")
		}
		if s.Release != "" && s.System {
			c.fault("is for the host's own release (without release)", "install", "apt", "system")
		}
	}
	if s := in.PyPI; s != nil {
		n++
		c.match(s.Package, packageName, "a package's name", "install", "pypi", "package")
		c.match(s.Version, versionText, "an exact version", "install", "pypi", "version")
		c.programs(s.Programs, true, "install", "pypi", "programs")
	}
	if n != 1 {
		c.fault(fmt.Sprintf("has %d sources (one of go, maven, apt, pypi)", n), "install")
	}
}

// programs checks names and paths, which must stay inside the install.
func (c *checking) programs(programs map[string]string, needed bool, at ...any) {
	if needed && len(programs) == 0 {
		c.fault("is missing (names of programs with their paths)", at...)
	}
	for name, p := range programs {
		if !packageName.MatchString(name) || p == "" || path.Clean(p) != p || strings.HasPrefix(p, "..") || strings.ContainsAny(p, "\\\x00") {
			c.fault(fmt.Sprintf("%s: %q does not fit (a name with a clean path)", name, p), append(slices.Clone(at), name)...)
		}
	}
}

// sources checks the files that are written into the copy of a module.
func (c *checking) sources(files map[string]string) {
	if len(files) > maxSourceFiles {
		c.fault(fmt.Sprintf("holds %d files (at most %d)", len(files), maxSourceFiles), "install", "go", "files")
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == "." || path.Clean(name) != name || path.IsAbs(name) || strings.HasPrefix(name, "..") || strings.ContainsAny(name, "\\\x00") {
			c.fault(fmt.Sprintf("%q does not fit (a clean path in the module)", name), "install", "go", "files", name)
		}
		if n := len(files[name]); n > sourceFileBytes {
			c.fault(fmt.Sprintf("is %d bytes long (at most %d)", n, sourceFileBytes), "install", "go", "files", name)
		}
	}
}

// parts checks the processes.
func (c *checking) parts() {
	r := c.recipe
	if len(r.Processes) == 0 {
		c.fault("is missing (a list)", "processes")
	}
	names, ports := map[string]bool{}, map[string]string{}
	for i, p := range r.Processes {
		at := func(more ...any) []any { return append([]any{"processes", i}, more...) }
		c.match(p.Name, recipeName, "a name of small letters, digits and -", at("name")...)
		if names[p.Name] {
			c.fault(fmt.Sprintf("%q is there twice (names that differ)", p.Name), at("name")...)
		}
		names[p.Name] = true
		c.oneOf(p.On, []string{onAll, onFirst, onOthers, onAddress}, at("on")...)
		for name, n := range p.Ports {
			if !portName.MatchString(name) || n < 1 || n > 65535 {
				c.fault(fmt.Sprintf("%s: %d does not fit (a name of small letters, digits and _, with the vendor's own port)", name, n), at("ports", name)...)
			}
			// A part on the first node and one on the others may share a port name.
			if on, taken := ports[name]; taken && (on == p.On || on+p.On != onFirst+onOthers && on+p.On != onOthers+onFirst) {
				c.fault(fmt.Sprintf("%q is another process's on the same node (names that differ)", name), at("ports", name)...)
			}
			ports[name] = p.On
		}
		for name := range p.Files {
			if name == "" || path.Clean(name) != name || path.IsAbs(name) || strings.HasPrefix(name, "..") || name == outputFile || name == dataFolder {
				c.fault(fmt.Sprintf("%q does not fit (a clean path in the process's folder, which is not %s nor %s)", name, outputFile, dataFolder), at("files", name)...)
			}
		}
		for name := range p.Env {
			c.match(name, variable, "the name of a variable", at("env", name)...)
		}
		if p.As != "" {
			c.match(p.As, userName, "a user's name", at("as")...)
		}
		for k, list := range map[string][]Command{"before": p.Before, "after": p.After} {
			for j, cmd := range list {
				if len(cmd.Run) == 0 || cmd.Run[0] == "" {
					c.fault("is missing (a program and its arguments)", at(k, j, "run")...)
				}
			}
		}
		if r.Install != nil && (len(p.Start) == 0 || p.Start[0] == "") {
			c.fault("is missing (a program and its arguments)", at("start")...)
		}
		if r.Install == nil && p.Docker == nil {
			c.fault("is missing, and the recipe has no install either (one of them)", at("docker")...)
		}
		if d := p.Docker; d != nil {
			c.match(d.Image, imageName, "an image with a pinned tag, such as redis:7.4.2", at("docker", "image")...)
			if strings.HasSuffix(d.Image, ":latest") {
				c.fault("is a moving tag (use a pinned one)", at("docker", "image")...)
			}
			if d.Data != "" && (!path.IsAbs(d.Data) || path.Clean(d.Data) != d.Data) {
				c.fault(fmt.Sprintf("%q does not fit (a folder's absolute path)", d.Data), at("docker", "data")...)
			}
			for name := range d.Env {
				c.match(name, variable, "the name of a variable", at("docker", "env", name)...)
			}
		}
	}
}

// layouts lays the recipe out for every number of nodes, to find failing templates.
func (c *checking) layouts() {
	r := c.recipe
	seen := map[string]bool{}
	for _, n := range r.Nodes {
		at := make([]Place, n)
		for i := range at {
			at[i].Address = fmt.Sprintf("10.77.2.%d", 4*i+2)
		}
		for _, p := range []plan{{}, {places: at}, {container: true}} {
			if !p.container && r.Install == nil {
				continue
			}
			p.recipe, p.nodes, p.settings, p.root, p.install = r, n, r.defaults(), "/root-folder", "/install-folder"
			p.numbered()
			if _, err := p.layout(); err != nil {
				fault := (*templateError)(nil)
				switch {
				case !errors.As(err, &fault):
					c.fault(err.Error())
				case !seen[pathText(fault.at)]:
					seen[pathText(fault.at)] = true
					c.fault(fmt.Sprintf("with %d nodes: %v (a template as docs/formats/recipe.md describes)", n, fault.err), fault.at...)
				}
			}
		}
	}
}
