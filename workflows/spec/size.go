package spec

import (
	"strconv"
	"strings"
)

// sizeUnits lists the units of sizes: powers of 1024 and of 1000.
var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
}

// ParseNumber parses a number, or a size such as 512GiB, which it returns in bytes.
func ParseNumber(text string) (float64, bool) {
	unit := 1.0
	for _, u := range sizeUnits {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = strings.TrimSpace(number), u.bytes
			break
		}
	}
	if text == "" || strings.Trim(text, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n * unit, err == nil
}

// ParseSize parses a size such as 512GiB or 80GB, and returns it in bytes.
func ParseSize(text string) (int64, error) {
	n, ok := ParseNumber(text)
	if !ok || n >= 1<<62 {
		return 0, valueError{Quote(text) + " is not a size", "for example, 512GiB or 80GB"}
	}
	return int64(n), nil
}
