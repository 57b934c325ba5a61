package redisserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
)

func TestRecipesParse(t *testing.T) {
	for _, x := range []struct {
		src  string
		want []string
	}{
		{Recipe(), []string{"redis", "valkey"}},
		{Clusters(), []string{"redis", "valkey", "redis-cluster", "valkey-cluster"}},
	} {
		rs := must.Get(broker.ParseRecipes("recipe.yaml", []byte(x.src)))(t)
		var names []string
		for _, r := range rs {
			names = append(names, r.Name)
			if strings.HasPrefix(r.Name, "valkey") != (r.Install.PyPI != nil) {
				t.Errorf("%s is had by %+v", r.Name, r.Install)
			}
		}
		if d := cmp.Diff(x.want, names); d != "" {
			t.Error(d)
		}
	}
}
