// Package list makes lists of lists.
package list

// Of returns what f makes of each item. It is nil for no items.
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
