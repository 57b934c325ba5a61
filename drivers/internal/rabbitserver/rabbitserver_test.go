package rabbitserver

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
)

// recipes parses all recipes, by name.
func recipes(t *testing.T) map[string]*broker.Recipe {
	t.Helper()
	all := map[string]*broker.Recipe{}
	for _, source := range []string{Recipe(), Three(), Streams()} {
		rs := must.Get(broker.ParseRecipes("recipe.yaml", []byte(source)))(t)
		for _, r := range rs {
			all[r.Name] = r
		}
	}
	return all
}

// TestRecipesParse also checks that each change finds the text to replace.
func TestRecipesParse(t *testing.T) {
	for name, version := range map[string]string{"rabbitmq": "4.0.5", "rabbitmq3": "distribution", "rabbitmq-stream": "4.0.5"} {
		if r := recipes(t)[name]; r == nil || r.Version != version {
			t.Errorf("%s: %+v, want version %s", name, r, version)
		}
	}
	for _, changes := range [][]string{three, streams} {
		for i := 0; i < len(changes); i += 2 {
			if n := strings.Count(recipe, changes[i]); n != 1 {
				t.Errorf("the recipe has %d times:\n%s", n, changes[i])
			}
		}
	}
}

// TestNodesJoinFirstNode: a node asks every node in its list, and RabbitMQ 4 waits about 20 s for
// each that is not up. With two such nodes, the first node waited twice.
func TestNodesJoinFirstNode(t *testing.T) {
	listed := regexp.MustCompile(`classic_config\.nodes\.(\d)`)
	for name, r := range recipes(t) {
		c := must.Get(broker.Compose(r, 3, nil))(t)
		var got []string
		for _, m := range listed.FindAllSubmatch(c.File, -1) {
			got = append(got, string(m[1]))
		}
		if want := []string{"1", "1", "2", "1", "3"}; !slices.Equal(got, want) {
			t.Errorf("%s: the three nodes look for %v, want %v", name, got, want)
		}
	}
}
