package broker

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/weirmq/weir/driver"
)

// A Composition is a system as a Compose file, for the user's own container engine. weir itself starts
// no container.
type Composition struct {
	File    []byte
	Images  []string // sorted
	Address []string
	Options map[string]map[string][]string // further driver options, by driver name
}

// composeFile is the subset of a Compose file that weir writes.
type composeFile struct {
	Name     string                    `yaml:"name"`
	Services yaml.MapSlice             `yaml:"services"`
	Configs  map[string]composeConfig  `yaml:"configs,omitempty"`
	Volumes  map[string]map[string]any `yaml:"volumes"`
}

type composeService struct {
	Image       string            `yaml:"image"`
	User        string            `yaml:"user,omitempty"`
	Entrypoint  []string          `yaml:"entrypoint,omitempty"`
	Command     []string          `yaml:"command,omitempty"`
	Environment map[string]string `yaml:"environment,omitempty"`
	Ports       []string          `yaml:"ports,omitempty"`
	Configs     []composeMount    `yaml:"configs,omitempty"`
	Volumes     []string          `yaml:"volumes,omitempty"`
	DependsOn   []string          `yaml:"depends_on,omitempty"`
}

type composeMount struct {
	Source string `yaml:"source"`
	Target string `yaml:"target"`
	Mode   string `yaml:"mode"`
}

type composeConfig struct {
	Content string `yaml:"content"`
}

// Compose writes a recipe's containers as a Compose file: images at the tags that the recipe pins, the
// vendor's ports published on 127.0.0.1 only, and configuration inline (which requires Compose 2.23.1
// or newer). An unsupported number of nodes or setting, or a recipe without containers, returns
// driver.ErrUnsupported.
func Compose(r *Recipe, nodes int, settings map[string]string) (*Composition, error) {
	s := Serving{Recipe: r, Nodes: nodes, Settings: settings}
	if err := s.Check(); err != nil {
		return nil, err
	}
	p := &plan{recipe: r, nodes: max(nodes, 1), settings: r.defaults(), container: true, root: containerFolder, install: containerFolder}
	maps.Copy(p.settings, settings)
	p.numbered()
	l, err := p.layout()
	if err != nil {
		return nil, fmt.Errorf("recipe %s: %w", r.Name, err)
	}
	if len(l.units) == 0 {
		return nil, fmt.Errorf("%w: the recipe of %s names no image", driver.ErrUnsupported, r.Name)
	}
	f := composeFile{Name: "weir-" + r.Name, Configs: map[string]composeConfig{}, Volumes: map[string]map[string]any{}}
	out := &Composition{Address: l.address, Options: l.options}
	earlier := map[string][]string{} // services of earlier units
	var before []string
	for i := range l.units {
		u := &l.units[i]
		if _, seen := earlier[u.part.Name]; !seen {
			earlier[u.part.Name] = slices.Clone(before)
		}
		f.Services = append(f.Services, yaml.MapItem{Key: u.name, Value: p.service(u, &f, earlier[u.part.Name])})
		before = append(before, u.name)
		out.Images = append(out.Images, u.part.Docker.Image)
	}
	slices.Sort(out.Images)
	out.Images = slices.Compact(out.Images)
	if out.File, err = yaml.MarshalWithOptions(f, yaml.UseLiteralStyleIfMultiline(true), yaml.IndentSequence(true)); err != nil {
		return nil, fmt.Errorf("writing the compose file: %w", err)
	}
	return out, nil
}

// service returns one container, and adds its files and its volume to f.
func (p *plan) service(u *unit, f *composeFile, after []string) composeService {
	d := u.part.Docker
	s := composeService{
		Image: d.Image, User: d.User, Entrypoint: escapeAll(u.entrypoint), Command: escapeAll(u.command),
		DependsOn: after, Environment: map[string]string{},
	}
	for _, e := range u.env {
		name, value, _ := strings.Cut(e, "=")
		s.Environment[name] = escape(value)
	}
	for _, name := range slices.Sorted(maps.Keys(u.part.Ports)) {
		n := strconv.Itoa(p.ports[u.node-1][name])
		s.Ports = append(s.Ports, loopback+":"+n+":"+n)
	}
	for _, name := range slices.Sorted(maps.Keys(u.files)) {
		source := u.name + "-" + strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
				return r
			}
			return '-'
		}, name)
		f.Configs[source] = composeConfig{escape(u.files[name])}
		s.Configs = append(s.Configs, composeMount{source, containerFolder + "/" + name, "0444"})
	}
	data := d.Data
	if data == "" {
		data = containerFolder + "/" + dataFolder
	}
	f.Volumes[u.name+"-data"] = map[string]any{}
	s.Volumes = []string{u.name + "-data:" + data}
	return s
}

// escape protects $ from Compose's variable substitution.
func escape(s string) string { return strings.ReplaceAll(s, "$", "$$") }

func escapeAll(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, escape(s))
	}
	return out
}
