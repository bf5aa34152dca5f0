package units

import (
	"fmt"
)

// Bytes formats a number of bytes with a readable unit.
func Bytes(n int64) string {
	const kib = 1 << 10
	if n < kib {
		return Count(int(n), "byte", "bytes")
	}
	v, unit := float64(n)/kib, 0
	for units := []string{"KiB", "MiB", "GiB", "TiB"}; ; unit++ {
		switch {
		case v >= 1000 && unit+1 < len(units):
			v /= kib
		case v < 10:
			return fmt.Sprintf("%.1f %s", v, units[unit])
		default:
			return fmt.Sprintf("%.0f %s", v, units[unit])
		}
	}
}
