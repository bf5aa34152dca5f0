// Package parallel does something for each of several items, for a bounded number of them at the
// same time.
package parallel

import "golang.org/x/sync/errgroup"

// Each calls do for each item, for at most that many at the same time, and returns after the last
// call.
func Each[T any](most int, items []T, do func(i int, item T)) {
	var group errgroup.Group
	group.SetLimit(most)
	for i, item := range items {
		group.Go(func() error {
			do(i, item)
			return nil
		})
	}
	_ = group.Wait()
}
