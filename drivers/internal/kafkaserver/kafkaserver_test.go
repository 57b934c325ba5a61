package kafkaserver

import (
	"testing"

	"github.com/weirmq/weir/internal/broker"
)

func TestRecipesParse(t *testing.T) {
	rs, err := broker.ParseRecipes("recipe.yaml", Recipe())
	if err != nil {
		t.Fatal(err)
	}
	if len(rs) != 2 || rs[0].Name != "kafka" || rs[1].Name != "redpanda" {
		t.Errorf("%d recipes", len(rs))
	}
}
