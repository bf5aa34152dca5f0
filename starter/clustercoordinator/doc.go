// Package clustercoordinator schedules closures on a run's tasks from an outside program, like
// TensorFlow's ClusterCoordinator:
//
//	c, err := clustercoordinator.New(ctx, starter.Get(temporal, "iris-x2k4", ""))
//	v, err := c.Schedule(ctx, "train_step", 3)
//	err = c.Join(ctx)
//	loss, err := clustercoordinator.Get[float64](ctx, v)
//
// The run's tasks register and serve the functions. A closure is called at least once: if a task
// dies during a call, another task repeats it. The queue is a workflow that outlives this program.
// Another coordinator that attaches to the run finds the same queue, with the closures that have
// not yet been called. Only the coordinator that scheduled a closure gets its value.
//
// After a closure fails, the next Schedule, Join or Done returns the first error, once everything
// else has been cancelled and nothing is executing. The queue remains usable. When Join
// returns, and when Done returns true, nothing is executing, and the values of all closures
// that this coordinator scheduled are available.
package clustercoordinator
