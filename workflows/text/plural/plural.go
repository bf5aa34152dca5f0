// Package plural writes counts of things.
package plural

import "fmt"

// Of returns the number with the word for one or for many: "1 task", "3 tasks".
func Of(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
