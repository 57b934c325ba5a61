package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a scenario file. A file of a person is far below them; one above
// is a mistake or an attack on the parser, which takes time by the square of a
// document's length (32 KiB of short lines: a second).
const (
	MaxFile   = 64 << 10 // bytes
	maxTokens = 16 << 10 // words and punctuation
	maxDepth  = 16       // nested lists and mappings
)

// shape is what a node is. Numbers, words and booleans are all texts: what a
// text means is decided by the key that it belongs to.
type shape uint8

const (
	empty shape = iota
	text
	list
	mapping
)

func (s shape) String() string {
	return [...]string{"empty", "a single value", "a list", "a mapping"}[s]
}

// A node is one value of a file with its place.
type node struct {
	shape  shape
	text   string
	at     Position
	from   string // what of the file besides its top it is from: "scenarios[1]", "matrix"; "" for the top
	items  []*node
	fields []field
}

// A field is one key of a mapping with its value.
type field struct {
	key   string
	at    Position // of the key
	value *node
}

// field returns the value of key, nil where there is none.
func (n *node) field(key string) *node {
	if n == nil || n.shape != mapping {
		return nil
	}
	for _, f := range n.fields {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// is reports whether n is this word.
func (n *node) is(word string) bool { return n.shape == text && strings.TrimSpace(n.text) == word }

// parse reads one YAML document whose top is a mapping. Faults other than
// those of syntax leave a tree of what could be read; it is nil otherwise.
func parse(name string, src []byte) (*node, Faults) {
	p := parsing{name: name}
	whole := Position{Source: name}
	fail := func(at Position, format string, args ...any) (*node, Faults) {
		return nil, Faults{{At: at, Message: fmt.Sprintf(format, args...)}}
	}
	if len(src) > MaxFile {
		return fail(whole, "is longer than a scenario may be (64 KiB)")
	}
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	if at, ok := firstInvalid(name, src); ok {
		return fail(at, "is not UTF-8 text")
	}
	if len(bytes.TrimSpace(src)) == 0 {
		return fail(whole, "is empty (a scenario begins with weir: 1)")
	}
	tokens := lexer.Tokenize(string(src))
	if len(tokens) > maxTokens {
		return fail(p.position(tokens[maxTokens]), "holds more than a scenario may (%d words)", maxTokens)
	}
	if at, ok := tooDeep(tokens); ok {
		return fail(p.position(at), "is nested too deeply (at most %d levels)", maxDepth)
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, msg := whole, err.Error()
		if e := yaml.Error(nil); errors.As(err, &e) {
			msg = e.GetMessage()
			if e.GetToken() != nil {
				at = p.position(e.GetToken())
			}
		}
		return fail(at, "is not valid YAML: %s", unquoted(firstLine(msg)))
	}
	var body ast.Node
	for _, d := range file.Docs {
		if d == nil || d.Body == nil {
			continue
		}
		if _, isComment := d.Body.(*ast.CommentGroupNode); isComment {
			continue
		}
		if body != nil {
			p.fault(p.position(d.Body.GetToken()), "", "begins a second document (one, with `scenarios:` for several scenarios)")
			break // the first is read all the same, for its own faults
		}
		body = d.Body
	}
	if body == nil {
		return fail(whole, "is empty (a scenario begins with weir: 1)")
	}
	n := p.node(body, "", 0)
	if n.shape != mapping {
		p.fault(n.at, "", "must be a mapping of keys (a scenario begins with weir: 1), is %s", n.shape)
		return nil, p.faults
	}
	return n, p.faults
}

// parseFlag reads the value of a flag: a list or mapping in YAML's flow style
// where it begins like one, a plain text otherwise.
func parseFlag(flag, value string) (*node, Faults) {
	at := Position{Source: flag}
	t := strings.TrimSpace(value)
	if !strings.HasPrefix(t, "{") && !strings.HasPrefix(t, "[") {
		return &node{shape: text, text: value, at: at}, nil
	}
	n, faults := parse(flag, []byte("value: "+t))
	for i := range faults {
		faults[i].At = at
	}
	if n == nil {
		return &node{shape: empty, at: at}, faults
	}
	v := n.field("value")
	v.move(at)
	return v, faults
}

// move gives n and all below it one position.
func (n *node) move(at Position) {
	n.positions(func(m *node) {
		m.at = at
		for i := range m.fields {
			m.fields[i].at = at
		}
	})
}

type parsing struct {
	name   string
	faults Faults
}

func (p *parsing) fault(at Position, path, format string, args ...any) {
	p.faults = append(p.faults, Fault{at, path, fmt.Sprintf(format, args...)})
}

func (p *parsing) position(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{Source: p.name}
	}
	return Position{p.name, t.Position.Line, t.Position.Column}
}

// node turns YAML's node into ours. What a scenario may not contain becomes an
// empty node and a fault.
func (p *parsing) node(a ast.Node, path string, depth int) *node {
	if a == nil {
		return &node{shape: empty, at: Position{Source: p.name}}
	}
	n := &node{at: p.position(a.GetToken())}
	if depth > maxDepth {
		p.fault(n.at, path, "is nested too deeply (at most %d levels)", maxDepth)
		return n
	}
	switch a := a.(type) {
	case *ast.MappingNode:
		n.shape = mapping
		for _, v := range a.Values {
			p.member(n, v, path, depth)
		}
		if len(n.fields) > 0 && n.fields[0].at.Line > 0 {
			n.at = n.fields[0].at
		}
	case *ast.MappingValueNode:
		n.shape = mapping
		p.member(n, a, path, depth)
	case *ast.SequenceNode:
		n.shape = list
		for i, v := range a.Values {
			if whole := p.colonText(v); a.IsFlowStyle && whole != nil {
				n.items = append(n.items, whole)
				continue
			}
			n.items = append(n.items, p.node(v, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case *ast.StringNode:
		if t := a.GetToken(); t != nil && strings.Contains(strings.TrimSpace(t.Origin), "\n") {
			// Not shown: what an open quote takes in may be anything.
			p.fault(n.at, path, "goes over several lines (one line; is a quote left open?)")
			return n
		}
		n.shape, n.text = text, a.Value
	case *ast.LiteralNode:
		n.shape, n.text = text, a.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		n.shape, n.text = text, a.GetToken().Value
	case *ast.NullNode:
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		p.fault(n.at, path, "anchors and aliases are not allowed (write the value out)")
	case *ast.TagNode:
		p.fault(n.at, path, "tags are not allowed (a plain value)")
	default:
		p.fault(n.at, path, "is not allowed here (a value, a list or a mapping)")
	}
	return n
}

// colonText reads as YAML has it what the parser takes for a mapping in a list
// inside braces: host:4222, whose colon has no space behind it, is one text.
func (p *parsing) colonText(a ast.Node) *node {
	braces, ok := a.(*ast.MappingNode)
	if !ok || len(braces.Values) != 1 || braces.GetToken().Type == token.MappingStartType {
		return nil
	}
	m := braces.Values[0]
	if m == nil || m.Key == nil || m.Value == nil {
		return nil
	}
	key, ok := m.Key.(*ast.StringNode)
	if _, scalar := m.Value.(ast.ScalarNode); !ok || !scalar || key.Token.Type != token.StringType {
		return nil
	}
	value := m.Value.GetToken()
	from, to := key.Token.Position, value.Position
	adjacent := from.Line == to.Line && to.Column == from.Column+utf8.RuneCountInString(key.Value)+len(":")
	if !adjacent || value.Type == token.DoubleQuoteType || value.Type == token.SingleQuoteType {
		return nil
	}
	return &node{shape: text, text: key.Value + ":" + value.Value, at: p.position(key.Token)}
}

func (p *parsing) member(n *node, v *ast.MappingValueNode, path string, depth int) {
	if v == nil || v.Key == nil {
		return
	}
	at := p.position(v.Key.GetToken())
	if _, merge := v.Key.(*ast.MergeKeyNode); merge {
		p.fault(at, path, "anchors and aliases are not allowed (write the value out)")
		return
	}
	var key string
	switch k := v.Key.(type) {
	case *ast.StringNode:
		key = k.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		key = k.GetToken().Value
	default:
		p.fault(at, path, "a key must be a plain word")
		return
	}
	full := join(path, key)
	value := p.node(v.Value, full, depth+1)
	if value.shape == empty && value.at.Line == 0 || value.shape == mapping {
		value.at = at
	}
	if n.field(key) != nil {
		p.fault(at, full, "is given twice (once)")
		return
	}
	n.fields = append(n.fields, field{key, at, value})
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// tooDeep finds the token at which flow collections, or block ones opened on
// one line ("- - - -"), nest deeper than allowed. It runs before the parser,
// which recurses.
func tooDeep(tokens token.Tokens) (*token.Token, bool) {
	depth, line, opened := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth = max(0, depth-1)
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType, token.MappingValueType:
			if t.Position.Line != line {
				line, opened = t.Position.Line, 0
			}
			if depth == 0 {
				opened++
			}
		}
		if depth > maxDepth || opened > maxDepth || (depth == 0 && t.Position.IndentNum > 256) {
			return t, true
		}
	}
	return nil, false
}

// firstInvalid returns the place of the first byte that is not UTF-8, or of a
// control character that no text has.
func firstInvalid(name string, src []byte) (Position, bool) {
	line, column := 1, 1
	for len(src) > 0 {
		r, n := utf8.DecodeRune(src)
		if r == utf8.RuneError && n == 1 || r < ' ' && r != '\n' && r != '\t' && r != '\r' {
			return Position{name, line, column}, true
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		src = src[n:]
	}
	return Position{}, false
}

// quoted is what the parser quotes of a file: the rest of a line, say, on which
// a password may stand. Single characters it quotes otherwise.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*("|$)`)

// unquoted is a message of the parser without the file's own text.
func unquoted(msg string) string { return quoted.ReplaceAllString(msg, "...") }

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
