package rabbitserver

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/broker"
)

// TestRecipesCanBeRead also shows that each change finds the text that it replaces.
func TestRecipesCanBeRead(t *testing.T) {
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
