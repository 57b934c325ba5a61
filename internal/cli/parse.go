package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/internal/scenario"
)

// explained says more of what the parser of the command line refuses: what an
// argument that is missing would be, and that a flag belongs to a later build.
func explained(err error) error {
	var refused *kong.ParseError
	if !errors.As(err, &refused) {
		return err
	}
	if rest, ok := strings.CutPrefix(err.Error(), "unknown flag --"); ok {
		name, _, _ := strings.Cut(rest, ",")
		section, _, _ := strings.Cut(name, ".")
		if slices.Contains(scenario.Later(), section) {
			return fmt.Errorf("--%s is not in this build yet (leave it out)", name)
		}
		return err
	}
	verb := refused.Context.Selected()
	if verb == nil || !strings.HasPrefix(err.Error(), "expected ") {
		return err
	}
	for _, p := range verb.Positional {
		if p.Required && !p.Set {
			return fmt.Errorf("%s: %s is missing (%s)", verb.Name, p.Summary(), lower(p.Help))
		}
	}
	return err
}

// lower writes a sentence of help as the end of another.
func lower(s string) string {
	return strings.ToLower(s[:1]) + strings.TrimSuffix(s[1:], ".")
}

// repeated refuses a flag that is given twice and does not add up, of which one
// would be left out unsaid. The flags of keys see to that themselves; that of a
// switch may be repeated, as in an alias of the shell.
func repeated(k *kong.Context) error {
	seen := map[*kong.Flag]bool{}
	for _, p := range k.Path {
		f := p.Flag
		if f == nil || f.IsBool() || f.IsCumulative() {
			continue
		}
		if seen[f] {
			return fmt.Errorf("--%s: is given twice (once)", f.Name)
		}
		seen[f] = true
	}
	return nil
}
