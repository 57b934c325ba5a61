package natsconn

import (
	"context"
	_ "embed" // embeds the recipe
	"fmt"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/natsd"
)

//go:embed recipe.yaml
var recipe string

// Recipe returns the recipe of NATS and JetStream.
func Recipe() string { return recipe }

// CheckNodes is Definition.Nodes of both drivers.
func CheckNodes(n int) error {
	if err := natsd.CheckNodes(n); err != nil {
		return fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
	}
	return nil
}

// Serve is Definition.Serve of both drivers.
func Serve(ctx context.Context, s driver.Service, o natsd.Options) error {
	o.Dir, o.Nodes, o.Port, o.Bind = s.Dir, s.Nodes, s.Port, s.Bind
	if err := natsd.Run(ctx, o, s.Ready, s.Log); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
