package result_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/result/resulttest"
)

// formats is the folder of the format descriptions.
var formats = filepath.Join("..", "docs", "formats")

func TestTheSchemasMatchTypes(t *testing.T) {
	for name, got := range resulttest.Schemas(false) {
		golden.File(t, filepath.Join(formats, name), string(got))
	}
}

func TestThePagesNameEveryField(t *testing.T) {
	page := ""
	for _, name := range []string{"result.md", "host.md"} {
		b := must.Get(os.ReadFile(filepath.Join(formats, name)))(t)
		page += string(b)
	}
	fields := resulttest.Fields()
	if len(fields) < 80 {
		t.Errorf("%d fields: the walk has lost some", len(fields))
	}
	for _, name := range fields {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%q is not described", name)
		}
	}
	for _, schema := range []string{result.Schema, result.SchemaIntervals, result.SchemaHGRM, result.SchemaEnvironment, result.SchemaEvents, result.SchemaHost} {
		if !strings.Contains(page, schema) {
			t.Errorf("%s is not described", schema)
		}
	}
}
