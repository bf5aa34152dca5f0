// Package list converts lists.
package list

// Of returns the results of f for all items, or nil if items is empty.
func Of[T, U any](items []T, f func(item T) U) []U {
	if len(items) == 0 {
		return nil
	}
	made := make([]U, len(items))
	for i, item := range items {
		made[i] = f(item)
	}
	return made
}
