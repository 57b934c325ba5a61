package rabbitserver

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/broker"
)

// TestRecipesParse also checks that each change finds the text to replace.
func TestRecipesParse(t *testing.T) {
	for name, recipe := range map[string][]byte{"rabbitmq": Recipe(), "rabbitmq-stream": Streams()} {
		rs, err := broker.ParseRecipes("recipe.yaml", recipe)
		if err != nil {
			t.Fatal(err)
		}
		if rs[0].Name != name {
			t.Errorf("%s: %d recipes", name, len(rs))
		}
	}
	for i := 0; i < len(changes); i += 2 {
		if n := strings.Count(recipe, changes[i]); n != 1 {
			t.Errorf("the recipe has %d times:\n%s", n, changes[i])
		}
	}
}

// TestNodesJoinFirstNode: a node asks every node in its list, and RabbitMQ 4 waits about 20 s for
// each that is not up. With two such nodes, the first node waited twice.
func TestNodesJoinFirstNode(t *testing.T) {
	listed := regexp.MustCompile(`classic_config\.nodes\.(\d)`)
	for _, source := range [][]byte{Recipe(), Streams()} {
		rs, err := broker.ParseRecipes("recipe.yaml", source)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			c, err := broker.Compose(r, 3, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range listed.FindAllSubmatch(c.File, -1) {
				got = append(got, string(m[1]))
			}
			if want := []string{"1", "1", "2", "1", "3"}; !slices.Equal(got, want) {
				t.Errorf("%s: the three nodes look for %v, want %v", r.Name, got, want)
			}
		}
	}
}
