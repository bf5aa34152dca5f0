// Package clustercoordinator schedules closures on the tasks of a run, from a program outside
// of it, as TensorFlow's ClusterCoordinator does:
//
//	c, err := clustercoordinator.New(ctx, starter.Get(temporal, "iris-x2k4", ""))
//	v, err := c.Schedule(ctx, "train_step", 3)
//	err = c.Join(ctx)
//	loss, err := clustercoordinator.Get[float64](ctx, v)
//
// Tasks of the run register the functions, and serve them. A closure is called at least once:
// if a task dies during a call, another task repeats it. The queue is a workflow; it outlives
// this program, and another coordinator that attaches to the run finds the same queue, with the
// closures still to call. Values are for the coordinator that has scheduled their closures.
//
// The next Schedule, Join or Done returns the first error of a closure, once everything else
// has been cancelled and nothing executes; the queue can be used again after that. When Join
// returns, and when Done returns true, nothing is executing, and the values of all closures
// that this coordinator has scheduled are there.
package clustercoordinator
