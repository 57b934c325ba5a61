package driver

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const goodPage = `---
persistence: memory
protocol: MQ, over
  TCP
client: the vendor's
---

One system. It keeps
what it gets.

It is
small.

## Words

- **destination**: a queue, weir.<run>.<destination>.
  [source](https://example.com/queues#what)
- **settle each**: ACK: one a message

## Guarantees

- **received** [source](https://example.com/acks)
- **persisted**, copies quorum, stable fsync: sync: always or 1, replication: 2 to 3 or 7 or more
`

// Includes each part of a page, and continued lines.
func TestParsePage(t *testing.T) {
	want := Page{
		About: "One system. It keeps what it gets.\n\nIt is small.", ClientWhy: "the vendor's",
		Features: Features{Persistence: "memory", Protocol: "MQ, over TCP"},
		Maps: []Mapping{
			{Word: "destination", To: "a queue, weir.<run>.<destination>", Source: "https://example.com/queues#what"},
			{Word: "settle each", To: "ACK: one a message"},
		},
		Confirmations: Confirmations{
			{Confirms: Confirms{Guarantee: Received}, Source: "https://example.com/acks"},
			{When: Conditions{{"sync", []string{"always", "1"}}, {"replication", []string{"2 to 3", "7 or more"}}}, Source: "https://example.com/acks", Confirms: Confirms{Persisted, CopiesQuorum, StableFsync}},
		},
		Recipe: []byte("recipe: 1\n---\nrecipe: 2\n"),
	}
	files := fstest.MapFS{"page.md": {Data: []byte(goodPage)}, "recipe.yaml": {Data: []byte("recipe: 1\n")}}
	if d := cmp.Diff(want, MustPage(files, "recipe: 2\n")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Breaks the valid page: a typo must not vanish from what readers see.
func TestInvalidPageIsRejected(t *testing.T) {
	for _, spoil := range []struct{ old, new, says string }{
		{"\n---\n\n", "\n\n", "no head"},
		{"persistence", "persist", "not a field"},
		{"## Words", "## Word", "sections"},
		{"## Guarantees", "## Guarantee", "sections"},
		{"**settle each**:", "settle each:", "is not a word"},
		{"queues#what)", "queues#what", "does not end with its source"},
		{"**received**", "received", "is not a guarantee"},
		{"**received**", "**receive**", "unknown guarantee"},
		{"copies quorum", "copies 2", "unknown word"},
		{"stable fsync", "stable disk", "unknown word"},
	} {
		_, err := parsePage(strings.Replace(goodPage, spoil.old, spoil.new, 1))
		if err == nil || !strings.Contains(err.Error(), spoil.says) {
			t.Errorf("%q for %q: %v; want %s", spoil.new, spoil.old, err, spoil.says)
		}
	}
}
