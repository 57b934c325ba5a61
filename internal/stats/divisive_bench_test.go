package stats

import (
	"math/rand/v2"
	"testing"
)

func BenchmarkChangePointsOf500(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	x := stepped(rng, 500, 400, 1.1, 0.05)
	for b.Loop() {
		if len(ChangePoints(x, 0.003, 1)) == 0 {
			b.Fatal("the step is not found")
		}
	}
}
