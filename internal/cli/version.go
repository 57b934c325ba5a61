package cli

import (
	"context"

	"github.com/weirmq/weir/internal/buildinfo"
)

// versionCommand is `weir version`.
type versionCommand struct {
	JSON bool `name:"json" help:"Print a JSON object on stdout."`
}

// run prints the versions.
func (c *versionCommand) run(_ context.Context, e *env) Code {
	v := buildinfo.VersionsOf(e.Drivers)
	return e.printed("the versions", e.answer(c.JSON, v, true, v.Show))
}
