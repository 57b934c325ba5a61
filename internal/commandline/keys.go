package commandline

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/view/layout"
)

// Keys has a flag for each scenario key: its short form if it has one, with the path as an alias, so that
// --rate is --load.rate.
type Keys struct {
	keys  []scenario.Key
	value reflect.Value // pointer to a struct with a []string for each key, one element per use of its flag
	Args  []string      // as given, to know which form was used
}

// NewKeys returns the flags of all keys except those for files only.
func NewKeys() *Keys {
	f := &Keys{}
	var fields []reflect.StructField
	for _, k := range scenario.Keys() {
		if k.FileOnly {
			continue
		}
		tag := `name:` + strconv.Quote(k.Path)
		if k.Short != "" {
			tag = `name:` + strconv.Quote(k.Short)
			if k.Short != k.Path {
				tag += ` aliases:` + strconv.Quote(k.Path)
			}
		}
		help := k.Help
		if k.Repeats {
			help += "; may be repeated"
		}
		help = layout.Sentence(withDefault(help, k.Default))
		fields = append(fields, reflect.StructField{
			Name: "F" + strconv.Itoa(len(fields)),
			Type: reflect.TypeFor[[]string](),
			Tag:  reflect.StructTag(tag + ` sep:"none" placeholder:"VALUE" group:` + strconv.Quote(group(k.Path)) + ` help:` + strconv.Quote(help)),
		})
		f.keys = append(f.keys, k)
	}
	f.value = reflect.New(reflect.StructOf(fields))
	return f
}

// withDefault adds a default to a help text, in the brackets at its end if there are any.
func withDefault(help, value string) string {
	if open, ok := strings.CutSuffix(help, ")"); ok {
		return open + "; default: " + value + ")"
	}
	return help + " (default: " + value + ")"
}

// group is the help heading for the flag of the key at path.
func group(path string) string {
	section, _, two := strings.Cut(path, ".")
	title := map[string]string{"system": "System", "topology": "Topology", "load": "Load", "message": "Messages", "consume": "Consumers", "network": "Network"}[section]
	if !two || title == "" {
		return "Run"
	}
	return title
}

// Plugin gives a command that embeds Keys the flags.
func (f *Keys) Plugin() kong.Plugins { return kong.Plugins{f.value.Interface()} }

// Overrides returns the given flags, one override per use.
func (f *Keys) Overrides() []scenario.Override {
	var out []scenario.Override
	for i, k := range f.keys {
		for _, v := range f.value.Elem().Field(i).Interface().([]string) { //nolint:forcetypeassert // NewKeys made it
			out = append(out, scenario.Override{Flag: f.spelling(k), Path: k.Path, Value: v})
		}
	}
	return out
}

// spelling returns the flag of k as the user wrote it.
func (f *Keys) spelling(k scenario.Key) string {
	long := "--" + k.Path
	if k.Short == "" || slices.ContainsFunc(f.Args, func(a string) bool { return a == long || strings.HasPrefix(a, long+"=") }) {
		return long
	}
	return "--" + k.Short
}

// Options parses --option NAME=VALUE and --address.
func Options(options, address []string) ([]scenario.Override, error) {
	var out []scenario.Override
	for _, o := range options {
		name, value, ok := strings.Cut(o, "=")
		if !ok || name == "" {
			return nil, errors.New("--option: has no = between a name and a value (NAME=VALUE)") // not shown: it may be a password
		}
		out = append(out, scenario.Override{Flag: "--option " + name, Path: "system.options." + name, Value: value})
	}
	if len(address) > 0 {
		out = append(out, scenario.Override{Flag: "--address", Path: "system.options.address", Value: strings.Join(address, ",")})
	}
	return out, nil
}

// negative matches a negative value, which looks like a flag.
var negative = regexp.MustCompile(`^-[0-9.]`)

// normalize rewrites what kong does not support: --system.options.X becomes --option X=, and negative
// values are tied to their flags, to be refused as values.
func normalize(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(out, args[i:]...)
		}
		if option, ok := strings.CutPrefix(a, "--system.options."); ok {
			if !strings.Contains(option, "=") && i+1 < len(args) {
				i++
				option += "=" + args[i]
			}
			out = append(out, "--option", option)
			continue
		}
		if strings.HasPrefix(a, "--") && !strings.Contains(a, "=") && i+1 < len(args) && negative.MatchString(args[i+1]) {
			i++
			a += "=" + args[i]
		}
		out = append(out, a)
	}
	return out
}
