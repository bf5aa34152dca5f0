package background

import "golang.org/x/sync/errgroup"

// Each calls do for each item, with at most most calls at a time, and returns after the last call.
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
