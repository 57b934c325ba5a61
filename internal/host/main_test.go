package host

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at returns a pointer to a value, for fields that are known.
func at[T any](v T) *T { return &v }
