package rules

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// TestRandomScripts lives through random scripts with the checks of FuzzQueue. Other
// ones with CLOSURES_SEED, more with CLOSURES_SCRIPTS.
func TestRandomScripts(t *testing.T) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return otherwise
	}
	seed := uint64(number("CLOSURES_SEED", 1))
	i := 0
	defer func() {
		if t.Failed() {
			t.Logf("script %d of CLOSURES_SEED=%d", i, seed)
		}
	}()
	for i = range number("CLOSURES_SCRIPTS", 50) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		data := make([]byte, 50+r.IntN(1500))
		for j := range data {
			data[j] = byte(r.UintN(256))
		}
		newFuzzed(t, data).run()
	}
}
