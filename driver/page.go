package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// A Page is the part of a Definition that a driver writes as files, which MustPage reads: page.md,
// from which `weir drivers NAME` and docs/drivers are made, and recipe.yaml.
type Page struct {
	About     string // a few sentences: what the system is, and what to know when reading its figures
	ClientWhy string // one clause: why this client library is measured; empty if there is none
	Embeds    string // module path of the system that Definition.Serve runs; empty if Serve is nil

	Features Features

	Maps          []Mapping     // what weir's terms mean in the system, Words first, in their order
	Confirmations Confirmations // which settings give which guarantee

	// Recipe describes how to install and start the server, in the YAML of docs/formats/recipe.md;
	// nil if there is no recipe yet. If it holds several documents, the first is the default.
	// Drivers that share a recipe use the same name.
	Recipe []byte
}

// Features are the columns of the feature table that are not Capabilities, each a few words without
// a capital and a full stop.
type Features struct {
	Persistence string `json:"persistence"`           // where messages are kept: "memory or files, by stream"
	Replication string `json:"replication"`           // how copies are made: "Raft, a group for each stream"; "none"
	Protocol    string `json:"protocol"`              // spoken on the wire: "NATS, text over TCP"; "none" in process
	Failover    string `json:"failover,omitempty"`    // what happens when a server dies or the network splits
	Encryption  string `json:"encryption,omitempty"`  // on the wire, and of what is stored
	Compression string `json:"compression,omitempty"` // by client, server or protocol
	Console     string `json:"console,omitempty"`     // operators' tool
	Untried     string `json:"untried,omitempty"`     // intended but never tested against: "Amazon SQS itself"; empty: nothing
}

// A Mapping explains what one of weir's terms means in a system.
type Mapping struct {
	Word   string `json:"word"`             // "destination"; also "settle each" and other terms
	To     string `json:"to"`               // a clause without a capital and a full stop
	Source string `json:"source,omitempty"` // https address where the vendor documents it; empty only for a system without a client library
}

// Words returns the terms that every driver's Maps explain.
func Words() []string {
	return []string{"destination", "partition", "subscription", "consumer", "guarantee"}
}

// MustPage reads a driver's page.md and, if there is one, its recipe.yaml, embedded in its package.
// recipes are further ones, shared with other drivers. The format of page.md:
//
//	---
//	persistence: memory, or files
//	replication: none
//	protocol: NSQ V2, binary over TCP
//	failover: none
//	encryption: TLS
//	compression: Snappy or deflate, of a connection
//	console: nsqadmin, in a browser
//	client: the vendor's own
//	embeds: example.com/server
//	---
//
//	About, in paragraphs.
//
//	## Words
//
//	- **destination**: a topic, on every server. [source](https://nsq.io/)
//
//	## Guarantees
//
//	- **received**
//	- **received**, stable os: storage: file, replication: 1 [source](https://nsq.io/)
//
// The head has the Features, ClientWhy (client) and Embeds; empty fields are left out. Lines of a
// field, a paragraph and an item continue on the next line, which is indented in a field and in an
// item. An item of Guarantees is a Confirmation; copies 1, stable none and an empty When are left
// out. An item without a source has that of the item above. MustPage panics on a missing or
// malformed page, which is a programming error.
func MustPage(files fs.FS, recipes ...string) Page {
	var p Page
	text, err := fs.ReadFile(files, "page.md")
	if err == nil {
		p, err = parsePage(string(text))
	}
	own, missing := fs.ReadFile(files, "recipe.yaml")
	if missing == nil {
		recipes = append([]string{string(own)}, recipes...)
	} else if !errors.Is(missing, fs.ErrNotExist) {
		err = errors.Join(err, missing)
	}
	if err != nil {
		panic("page of a driver: " + err.Error())
	}
	if len(recipes) > 0 {
		p.Recipe = []byte(strings.Join(recipes, "---\n"))
	}
	return p
}

// paragraphs unfolds the lines of each paragraph.
func paragraphs(text string) string {
	all := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range all {
		all[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(all, "\n\n")
}

func parsePage(text string) (Page, error) {
	var p Page
	head, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if !ok {
		return p, fmt.Errorf("has no head between two lines of ---")
	}
	fields := map[string]*string{
		"persistence": &p.Features.Persistence, "replication": &p.Features.Replication, "protocol": &p.Features.Protocol,
		"failover": &p.Features.Failover, "encryption": &p.Features.Encryption, "compression": &p.Features.Compression, "console": &p.Features.Console,
		"untried": &p.Features.Untried,
		"client":  &p.ClientWhy, "embeds": &p.Embeds,
	}
	for _, line := range unfolded(head) {
		name, value, _ := strings.Cut(line, ": ")
		if fields[name] == nil {
			return p, fmt.Errorf("its head has %q, which is not a field", name)
		}
		*fields[name] = value
	}
	about, rest, ok := strings.Cut(body, "\n## Words\n")
	words, guarantees, both := strings.Cut(rest, "\n## Guarantees\n")
	if !ok || !both {
		return p, fmt.Errorf("does not have the sections Words and Guarantees")
	}
	p.About = paragraphs(about)
	for _, item := range unfolded(words) {
		marked, isWord := strings.CutPrefix(item, "- **")
		word, to, ok := strings.Cut(marked, "**: ")
		if !isWord || !ok || word == "" || to == "" || strings.Contains(word, "*") {
			return p, fmt.Errorf("%q is not a word", item)
		}
		to, source, sourced := strings.Cut(to, " [source](")
		if sourced && !strings.HasSuffix(source, ")") {
			return p, fmt.Errorf("%q does not end with its source", item)
		}
		p.Maps = append(p.Maps, Mapping{Word: word, To: strings.TrimSuffix(to, "."), Source: strings.TrimSuffix(source, ")")})
	}
	for _, item := range unfolded(guarantees) {
		c, err := confirmation(strings.TrimPrefix(item, "- "))
		if err != nil {
			return p, fmt.Errorf("%q: %w", item, err)
		}
		if n := len(p.Confirmations); n > 0 && c.Source == "" {
			c.Source = p.Confirmations[n-1].Source
		}
		p.Confirmations = append(p.Confirmations, c)
	}
	return p, nil
}

// unfolded returns the lines of a text, each joined with the indented lines below it. Empty lines
// are left out.
func unfolded(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		words := strings.Join(strings.Fields(line), " ")
		switch {
		case words == "":
		case strings.HasPrefix(line, " ") && len(out) > 0:
			out[len(out)-1] += " " + words
		default:
			out = append(out, words)
		}
	}
	return out
}
