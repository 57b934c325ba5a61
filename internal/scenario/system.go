package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// system reads the section system, including the driver's options.
func (d *decoder) system(s *Scenario) {
	sys := &s.System
	name, n, ok := d.scalar("system.driver", strings.Join(d.in.Drivers.Known(), ", "))
	if !ok {
		name = defaultDriver
	}
	def, err := d.in.Drivers.Lookup(name)
	if err != nil {
		at := Position{}
		if n != nil {
			at = n.At
		}
		d.fault(at, "system.driver", "%v%s", err, d.sweep(n, "system.driver"))
	} else {
		sys.Definition = def
		sys.Config = def.New()
		for _, o := range driver.Options(sys.Config) {
			d.optionNames = append(d.optionNames, o.Name)
		}
		d.recipe(sys)
		d.options(sys, d.in)
		sys.Definition.Capabilities = def.Capabilities.With(sys.informed())
	}
	d.start(sys)
}

// given reports whether the scenario sets the option name.
func (s *System) given(name string) bool {
	return slices.ContainsFunc(s.Options, func(o Option) bool { return o.Name == name })
}

func (d *decoder) start(sys *System) {
	def := sys.Definition
	address := sys.given("address")
	embeds := def.Serve != nil
	if embeds && !address && !d.has("topology.names") {
		sys.Start = StartEmbedded
	}
	n, how := d.find("system.start"), StartNone
	switch {
	case n == nil:
	case n.Is("docker"):
		d.fault(n.At, "system.start", "weir starts no containers: weir broker up %s --via docker writes a compose file, and --address says where it runs (%s)", def.Name, strings.Join(starts, ", "))
	case !start.read(d, n, "system.start", &how):
	case how == StartNone:
		sys.Start = StartNone
	case how == StartProcess:
		d.process(sys)
	case def.New == nil:
	case !embeds:
		d.fault(n.At, "system.start", "weir does not embed %s (none)", def.Name)
	case address:
		d.fault(d.later("system.start", "system.options"), "system.start", "embedded and an address exclude one another (one of them)")
	default:
		sys.Start = StartEmbedded
	}
	if sys.Start == StartNone {
		for _, o := range sys.Options {
			if strings.HasPrefix(o.Name, driver.ServerPrefix) {
				path := tree.Join("system.options", o.Name)
				d.fault(d.places[o.Name].At, path, "is for a server that weir starts, and here it starts none (leave it out)")
			}
		}
	}
}

// combineSystem checks the servers that weir starts, and the guarantee of the driver's confirmations.
func (d *decoder) combineSystem(s *Scenario) {
	sys := &s.System
	at := d.at("system.nodes")
	switch {
	case sys.Recipe != nil && !slices.Contains(sys.Recipe.Nodes, sys.Nodes):
		if !d.has("system.nodes") {
			at = d.at("system.start")
		}
		d.fault(at, "system.nodes", "%s cannot form a system of %d node(s) (%s)", sys.Recipe.Name, sys.Nodes, strings.Trim(strings.ReplaceAll(fmt.Sprint(sys.Recipe.Nodes), " ", ", "), "[]"))
	case sys.Nodes > 1 && sys.Start == StartNone && d.known(s):
		d.fault(at, "system.nodes", "is how many servers weir starts, and here it starts none (leave it out)")
	}
	def := sys.Definition
	if can := def.Capabilities.Guarantees; len(can) > 0 && sys.Guarantee > slices.Max(can) {
		_, bounds := sys.Config.(driver.GuaranteePredictor)
		if all, err := d.in.Drivers.Lookup(def.Name); bounds && err == nil && slices.Contains(all.Capabilities.Guarantees, sys.Guarantee) {
			d.bound(s) // supported with other options
			return
		}
		d.fault(d.at("system.guarantee"), "system.guarantee", "driver %s never confirms more than %s (up to %s)", def.Name, slices.Max(can), slices.Max(can))
	}
}

// A given is an option whose type has not been checked yet.
type given struct {
	name  string
	value *tree.Node
}

// flatten lists the options of a mapping, with dotted names for nested ones.
func (d *decoder) flatten(n *tree.Node, prefix string) (out []given) {
	for _, f := range n.Fields {
		name := f.Key
		if prefix != "" {
			name = prefix + "." + f.Key
		}
		if f.Value.Shape == tree.Mapping && !slices.Contains(d.optionNames, name) {
			inner := d.flatten(f.Value, name)
			if len(inner) == 0 {
				inner = []given{{name, f.Value}}
			}
			out = append(out, inner...)
			continue
		}
		out = append(out, given{name, f.Value})
	}
	return out
}

var envForm = regexp.MustCompile(`^\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}$`)

// options sets the driver's options and has the driver check them.
func (d *decoder) options(sys *System, in Inputs) {
	const path = "system.options"
	n := d.find(path)
	if n != nil && n.Shape != tree.Mapping {
		d.fault(n.At, path, "is %s (a mapping of the driver's options)", n.Shape)
		return
	}
	places := map[string]*tree.Node{}
	d.places, d.login = places, login{}
	if n != nil {
		types := map[string]string{}
		for _, o := range driver.Options(sys.Config) {
			types[o.Name] = o.Type
		}
		for _, g := range d.flatten(n, "") {
			if first, twice := places[g.name]; twice {
				if g.value.At.Line > 0 && first.At.Line > 0 && g.value.From == first.From {
					d.fault(g.value.At, tree.Join(path, g.name), "is given twice (once)")
					continue
				}
				sys.Options = slices.DeleteFunc(sys.Options, func(o Option) bool { return o.Name == g.name })
			}
			places[g.name] = g.value
			d.option(sys, in, g, types[g.name])
		}
	}
	given := func(name string) bool { return places[name] != nil }
	set, errs := d.login.apply(sys.Config, d.loginFrom, given)
	sys.FromURL = set
	for _, err := range errs {
		d.fault(places["address"].At, tree.Join(path, "address"), "%v", err)
	}
	sort.Slice(sys.Options, func(i, j int) bool { return sys.Options[i].Name < sys.Options[j].Name })
	if err := driver.Check(sys.Config); err != nil {
		for _, e := range split(err) {
			at, p, msg := d.at(path), path, e.Error()
			if o := (*driver.OptionError)(nil); errors.As(e, &o) {
				p, msg = tree.Join(path, o.Name), o.Err.Error()
				if place, ok := places[o.Name]; ok {
					at = place.At
				}
			}
			d.fault(at, p, "%s", msg)
		}
	}
}

// split splits joined errors.
func split(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, split(e)...)
		}
		return out
	}
	return []error{err}
}

// optionLike matches possible option names.
var optionLike = regexp.MustCompile(`^[a-z][a-z._-]{0,23}$`)

// option sets one option.
func (d *decoder) option(sys *System, in Inputs, g given, kind string) {
	path := tree.Join("system.options", g.name)
	if name, server := strings.CutPrefix(g.name, driver.ServerPrefix); server && sys.Recipe != nil {
		d.setting(sys, in, g, name, kind)
		return
	}
	o := Option{Name: g.name, Secret: kind == "secret"}
	fail := func(err error) {
		if e := (*driver.OptionError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		d.fault(g.value.At, path, "%v", err)
	}
	if kind == "" {
		if !optionLike.MatchString(g.name) {
			path = "system.options" // nor its position; what does not look like a name may be a value
		}
		fail(driver.SetOption(sys.Config, g.name, "")) // the error lists the options
		return
	}
	value, err := d.optionValue(&o, in, g.value, kind)
	if err == nil && g.name == "address" {
		whole := strings.Join(value, ",")
		if g.value.At.Source == addressVariable && strip("address", whole) != whole {
			o.Reference = "${env:" + addressVariable + "}" // so that it is treated as a secret
		}
		if o.Reference != "" {
			value, d.login, err = splitURL(whole, sys.Config)
			d.loginFrom = o.reference()
		}
		if err == nil {
			err = checkAddress(value)
		}
	}
	if err == nil && isFile(sys, g.name) && value[0] != "" && !in.Elsewhere {
		err = in.permit(Need{File: value[0]})
	}
	if err == nil && isCommand(sys, g.name) && !in.Elsewhere {
		err = in.permit(Need{Command: commandText(value)})
	}
	if err == nil {
		if o.Secret {
			err = driver.SetSecret(sys.Config, g.name, driver.NewSecret(value[0], o.reference()))
		} else {
			err = driver.SetOption(sys.Config, g.name, value...)
			if err != nil && o.Reference != "" {
				// A referenced value may be confidential, whatever its type.
				err = fmt.Errorf("the value that %s gives is not a valid %s, and is not shown (see weir drivers %s)", o.reference(), kind, sys.Definition.Name)
			}
		}
	}
	if err != nil {
		fail(err)
		return
	}
	if !o.Secret && o.Reference == "" {
		o.Values = value
	}
	sys.Options = append(sys.Options, o)
}

// reference returns the text that names the source of a Secret.
func (o *Option) reference() string {
	if o.File {
		return "{file: " + o.Reference + "}"
	}
	return o.Reference
}

// optionValue returns the texts of an option and records their origin in o.
func (d *decoder) optionValue(o *Option, in Inputs, n *tree.Node, kind string) ([]string, error) {
	switch n.Shape {
	case tree.List:
		var out []string
		for _, item := range n.Items {
			if item.Shape != tree.Text {
				return nil, fmt.Errorf("holds %s (a list of texts)", item.Shape)
			}
			out = append(out, item.Text)
		}
		if o.Secret {
			return nil, errors.New("is a list (one text, ${env:NAME} or {file: PATH})")
		}
		return out, nil
	case tree.Mapping:
		file := n.Field("file")
		if len(n.Fields) != 1 || file == nil || file.Shape != tree.Text {
			return nil, fmt.Errorf("is a mapping (a %s, ${env:NAME} or {file: PATH})", kind)
		}
		o.Reference, o.File = in.path(file.Text, file.At), true
		if o.Secret && in.Elsewhere {
			return []string{unknown}, nil
		}
		if err := in.permit(Need{File: o.Reference}); err != nil {
			return nil, err
		}
		b, err := in.readOption(o.Reference)
		if err != nil {
			return nil, fmt.Errorf("reading its file: %w", err)
		}
		if len(b) > mostOption || len(strings.TrimSpace(string(b))) == 0 {
			return nil, errors.New("its file is empty or longer than 64 KiB")
		}
		return []string{strings.TrimRight(string(b), "\r\n")}, nil
	case tree.Empty:
		return nil, errors.New("is empty (a value, or leave it out)")
	}
	if m := envForm.FindStringSubmatch(n.Text); m != nil {
		o.Reference = n.Text
		if o.Secret && in.Elsewhere {
			return []string{unknown}, nil
		}
		if err := in.permit(Need{Env: m[1]}); err != nil {
			return nil, err
		}
		v, ok := in.Env(m[1])
		if !ok || v == "" {
			return nil, fmt.Errorf("the environment variable %s is not set", m[1])
		}
		return []string{v}, nil
	}
	if o.Secret {
		return nil, errors.New("is a secret, and others can read files and command lines: give a reference to it (${env:NAME} or {file: PATH})")
	}
	if kind == "list" && n.At.Line == 0 {
		return strings.Split(n.Text, ","), nil
	}
	return []string{n.Text}, nil
}

// checkAddress rejects what no driver's address may contain. Its errors do not repeat the address,
// which may contain a password.
func checkAddress(addresses []string) error {
	for _, a := range addresses {
		if strings.TrimSpace(a) == "" {
			return errors.New("is empty (an address as the driver takes it)")
		}
		if stripUser(a) != a || strip("address", a) != a {
			return errors.New("holds a user or password, which logs of addresses would show: give them as the driver's own options, a secret as a reference (${env:NAME} or {file: PATH})")
		}
		if strings.ContainsAny(a, "?#") {
			return errors.New("has a query or fragment, which weir does not pass on (scheme, host and port, settings as the driver's own options)")
		}
		_, host, found := strings.Cut(a, "://")
		if !found {
			host = a
		}
		host, _, _ = strings.Cut(host, "/")
		if i := strings.LastIndexByte(host, ':'); i >= 0 && isNumber(host[i+1:]) {
			if n, err := strconv.Atoi(host[i+1:]); err != nil || n < 1 || n > 65535 {
				return fmt.Errorf("port %s is out of range (1 to 65535)", host[i+1:])
			}
		}
	}
	return nil
}
