package host

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at returns a pointer to a value, as known fields are given.
func at[T any](v T) *T { return &v }
