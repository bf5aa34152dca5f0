package units_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/text/units"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1024: "1.0 KiB", 10240: "10 KiB", 120 << 20: "120 MiB", 3 << 29: "1.5 GiB"} {
		assert.Equal(t, want, units.Bytes(n))
	}
}
