// Package tree parses a scenario file into a tree of texts with positions, and edits such trees.
//
// It handles YAML and its dangers (size, depth, aliases, several documents) but knows no scenario
// keys. The reader of the tree interprets the texts, and reports a Fault at a text's Position.
package tree

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

// Limits of a scenario file. Hand-written files are far below them; a larger one is a mistake or an
// attack on the parser, whose time is quadratic in a document's length (32 KiB of short lines: a
// second).
const (
	MaxFile   = 64 << 10 // bytes per file
	MaxTokens = 16 << 10 // tokens per file
	maxDepth  = 16       // nested lists and mappings
)

// A Shape is the type of a node. Numbers, words and booleans are all texts, to be interpreted by key.
type Shape uint8

// The shapes.
const (
	Empty   Shape = iota // no value after the key, or something that a scenario may not contain
	Text                 // a number, a word, a boolean
	List                 // Items
	Mapping              // Fields
)

// String returns the shape for messages: "a list".
func (s Shape) String() string {
	return [...]string{"empty", "a single value", "a list", "a mapping"}[s]
}

// A Node is one value of a file with its position. It is immutable once read: edits copy it and share
// the rest.
type Node struct {
	Shape  Shape
	Text   string
	At     Position
	From   string // part of the file it is from: "scenarios[1]", "matrix"; "" for the top
	Items  []*Node
	Fields []Field
}

// A Field is one key of a mapping with its value.
type Field struct {
	Key   string
	At    Position // of the key
	Value *Node
}

// Field returns the value of key, or nil if there is none.
func (n *Node) Field(key string) *Node {
	if n == nil || n.Shape != Mapping {
		return nil
	}
	for _, f := range n.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// Is reports whether n is this word.
func (n *Node) Is(word string) bool { return n.Shape == Text && strings.TrimSpace(n.Text) == word }

// Parse parses one YAML document with a mapping at its top. After a syntax fault the tree is nil;
// after others it holds what could be read.
func Parse(name string, src []byte) (*Node, Faults) {
	p := parsing{name: name}
	whole := Position{Source: name}
	fail := func(at Position, format string, args ...any) (*Node, Faults) {
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
	if len(tokens) > MaxTokens {
		return fail(p.position(tokens[MaxTokens]), "holds more than a scenario may (%d words)", MaxTokens)
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
			break // read the first one anyway, for its faults
		}
		body = d.Body
	}
	if body == nil {
		return fail(whole, "is empty (a scenario begins with weir: 1)")
	}
	n := p.node(body, "", 0)
	if n.Shape != Mapping {
		if len(p.faults) > 0 {
			return nil, p.faults // its content is unknown
		}
		p.fault(n.At, "", "must be a mapping of keys (a scenario begins with weir: 1), is %s", n.Shape)
		return nil, p.faults
	}
	return n, p.faults
}

// ParseFlag parses the value of a flag: a list or mapping in YAML's flow style if it begins like one,
// a plain text otherwise.
func ParseFlag(flag, value string) (*Node, Faults) {
	at := Position{Source: flag}
	t := strings.TrimSpace(value)
	if !strings.HasPrefix(t, "{") && !strings.HasPrefix(t, "[") {
		return &Node{Shape: Text, Text: value, At: at}, nil
	}
	n, faults := Parse(flag, []byte("value: "+t))
	for i := range faults {
		faults[i].At = at
	}
	if n == nil {
		return &Node{Shape: Empty, At: at}, faults
	}
	v := n.Field("value")
	v.move(at)
	return v, faults
}

// move sets the position of n and its descendants.
func (n *Node) move(at Position) {
	n.Walk(func(m *Node) {
		m.At = at
		for i := range m.Fields {
			m.Fields[i].At = at
		}
	})
}

type parsing struct {
	name   string
	faults Faults
}

func (p *parsing) fault(at Position, path, format string, args ...any) {
	p.faults.Add(at, path, format, args...)
}

func (p *parsing) position(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{Source: p.name}
	}
	return Position{p.name, t.Position.Line, t.Position.Column}
}

// node converts a node of the YAML library. What a scenario may not contain becomes an empty node and
// a fault.
func (p *parsing) node(a ast.Node, path string, depth int) *Node {
	if a == nil {
		return &Node{Shape: Empty, At: Position{Source: p.name}}
	}
	n := &Node{At: p.position(a.GetToken())}
	if depth > maxDepth {
		p.fault(n.At, path, "is nested too deeply (at most %d levels)", maxDepth)
		return n
	}
	switch a := a.(type) {
	case *ast.MappingNode:
		n.Shape = Mapping
		for _, v := range a.Values {
			p.member(n, v, path, depth)
		}
		if len(n.Fields) > 0 && n.Fields[0].At.Line > 0 {
			n.At = n.Fields[0].At
		}
	case *ast.MappingValueNode:
		n.Shape = Mapping
		p.member(n, a, path, depth)
	case *ast.SequenceNode:
		n.Shape = List
		for i, v := range a.Values {
			if whole := p.colonText(v); a.IsFlowStyle && whole != nil {
				n.Items = append(n.Items, whole)
				continue
			}
			n.Items = append(n.Items, p.node(v, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case *ast.StringNode:
		if t := a.GetToken(); t != nil && strings.Contains(strings.TrimSpace(t.Origin), "\n") {
			// Not shown: an unclosed quote may contain anything.
			p.fault(n.At, path, "goes over several lines (one line; is a quote left open?)")
			return n
		}
		n.Shape, n.Text = Text, a.Value
	case *ast.LiteralNode:
		n.Shape, n.Text = Text, a.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		n.Shape, n.Text = Text, a.GetToken().Value
	case *ast.NullNode:
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		p.fault(n.At, path, "anchors and aliases are not allowed (write the value out)")
	case *ast.TagNode:
		p.fault(n.At, path, "tags are not allowed (a plain value)")
	default:
		p.fault(n.At, path, "is not allowed here (a value, a list or a mapping)")
	}
	return n
}

// colonText handles what the parser takes for a mapping in a list inside braces but YAML defines as
// one text: host:4222, without a space after its colon.
func (p *parsing) colonText(a ast.Node) *Node {
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
	return &Node{Shape: Text, Text: key.Value + ":" + value.Value, At: p.position(key.Token)}
}

func (p *parsing) member(n *Node, v *ast.MappingValueNode, path string, depth int) {
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
	full := Join(path, key)
	value := p.node(v.Value, full, depth+1)
	if value.Shape == Empty && value.At.Line == 0 || value.Shape == Mapping {
		value.At = at
	}
	if n.Field(key) != nil {
		p.fault(at, full, "is given twice (once)")
		return
	}
	n.Fields = append(n.Fields, Field{key, at, value})
}

// Join returns the path of a key in the section path; "" is the top.
func Join(path, key string) string {
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

// firstInvalid returns the position of the first invalid UTF-8 byte, or of a control character that no
// text has.
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

// quoted matches what the parser quotes from a file, such as the rest of a line, which may contain a
// password. It quotes single characters differently.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*("|$)`)

// unquoted returns a parser message without the quoted parts of the file.
func unquoted(msg string) string { return quoted.ReplaceAllString(msg, "...") }

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
