package lease

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWitnessesAreSpread(t *testing.T) {
	for hosts, want := range map[int][]int{
		2: {0, 1}, 7: {0, 1, 2, 3, 4, 5, 6}, 8: {1, 2, 3, 4, 5, 6, 7}, 40: {5, 11, 17, 22, 28, 34, 39}, 1900: {271, 542, 814, 1085, 1357, 1628, 1899},
	} {
		var got []int
		for i := range hosts {
			if IsWitness(i, hosts) {
				got = append(got, i)
			}
		}
		assert.Equal(t, want, got)
	}
}
