package commandline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// explained adds to a parser error what a missing argument would be.
func explained(err error) error {
	var refused *kong.ParseError
	if !errors.As(err, &refused) {
		return err
	}
	if flag, _, ok := strings.Cut(err.Error(), ": missing value"); ok {
		return fmt.Errorf("%s: has no value (%[1]s=VALUE)", flag)
	}
	if flag, _, ok := strings.Cut(err.Error(), ": expected string value but got "); ok && strings.HasPrefix(flag, "--") {
		if flag == "--until-decided" {
			return errors.New("--until-decided: has no value (--until-decided yes)")
		}
		return fmt.Errorf("%s: has no value before the next flag (%[1]s=VALUE)", flag)
	}
	if verbs, ok := strings.CutPrefix(err.Error(), "expected one of "); ok {
		return fmt.Errorf("which command? (%s)", strings.ReplaceAll(verbs, `"`, ""))
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

// lower turns a sentence of help into the end of another.
func lower(s string) string {
	return strings.ToLower(s[:1]) + strings.TrimSuffix(s[1:], ".")
}

// repeated refuses a repeated flag that is not cumulative, since one of the values would have no effect.
// Keys check this themselves; a switch may be repeated, as by a shell alias.
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
