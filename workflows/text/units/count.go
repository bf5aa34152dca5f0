package units

import "fmt"

// Count returns the number with the singular or the plural: "1 task", "3 tasks".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
