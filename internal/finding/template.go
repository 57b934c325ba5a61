package finding

import (
	"fmt"
	"strings"
)

// A template is a sentence with places for values: {name}, {name:format} with a format of
// write, and [name|text|other text], which has the first text where there is such a value and
// it is not false or empty, and the other else. [name=value|…] asks for one value.
type template []piece

// A piece is literal text, a value (name), or a choice (name with yes and no).
type piece struct {
	text         string
	name, format string
	choice       bool
	equals       string
	yes, no      template
}

// parse reads a template.
func parse(s string) (template, error) {
	t, rest, err := parseUntil(s, "")
	if err == nil && rest != "" {
		err = fmt.Errorf("%q closes nothing", rest)
	}
	return t, err
}

// parseUntil reads up to one of the characters in ends that is outside of braces and brackets.
func parseUntil(s, ends string) (t template, rest string, err error) {
	for s != "" {
		i := strings.IndexAny(s, "{[|]")
		if i < 0 {
			return append(t, piece{text: s}), "", nil
		}
		if i > 0 {
			t = append(t, piece{text: s[:i]})
		}
		switch s = s[i:]; s[0] {
		case '{':
			inner, after, ok := strings.Cut(s[1:], "}")
			p := piece{}
			p.name, p.format, _ = strings.Cut(inner, ":")
			if !ok {
				return nil, "", fmt.Errorf("%q is no place for a value", s)
			}
			t, s = append(t, p), after
		case '[':
			inner, after, ok := strings.Cut(s[1:], "|")
			p := piece{choice: true}
			p.name, p.equals, _ = strings.Cut(inner, "=")
			if !ok {
				return nil, "", fmt.Errorf("%q has no text", s)
			}
			if p.yes, after, err = parseUntil(after, "|]"); err != nil {
				return nil, "", err
			}
			if strings.HasPrefix(after, "|") {
				if p.no, after, err = parseUntil(after[1:], "]"); err != nil {
					return nil, "", err
				}
			}
			if after, ok = strings.CutPrefix(after, "]"); !ok {
				return nil, "", fmt.Errorf("%q is not closed", s)
			}
			t, s = append(t, p), after
		default:
			if strings.IndexByte(ends, s[0]) < 0 {
				return nil, "", fmt.Errorf("%q stands alone", s)
			}
			return t, s, nil
		}
	}
	return t, "", nil
}

// render fills in values.
func (t template) render(values map[string]any) string {
	var b strings.Builder
	for _, p := range t {
		v, has := values[p.name]
		switch {
		case p.choice:
			part := p.no
			if has && p.holds(v) {
				part = p.yes
			}
			b.WriteString(part.render(values))
		case p.name == "":
			b.WriteString(p.text)
		case !has:
			b.WriteString("{" + p.name + "}")
		default:
			text, _ := write(p.format, v)
			b.WriteString(text)
		}
	}
	return b.String()
}

// holds reports whether a choice is for its first text.
func (p *piece) holds(v any) bool {
	if p.equals != "" {
		return fmt.Sprint(v) == p.equals
	}
	switch v := v.(type) {
	case bool:
		return v
	case string:
		return v != ""
	case Finding:
		return v.Code != ""
	case []Finding:
		return len(v) > 0
	case []string:
		return len(v) > 0
	}
	return true
}

// names visits the names in a template; may says that they may be missing.
func (t template) names(may bool, visit func(name string, may bool)) {
	for _, p := range t {
		switch {
		case p.choice:
			visit(p.name, true)
			p.yes.names(true, visit)
			p.no.names(true, visit)
		case p.name != "":
			visit(p.name, may)
		}
	}
}
