//go:build !linux && !darwin

package host

import "context"

// observe returns nothing: this platform is not supported.
func observe(context.Context, CheckTarget) observed { return observed{} }
