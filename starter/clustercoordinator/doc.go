// Package clustercoordinator schedules closures on the tasks of a run, from a program
// outside of it, as TensorFlow's ClusterCoordinator does:
//
//	c, err := clustercoordinator.New(ctx, starter.Get(temporal, "iris-x2k4", ""))
//	v, err := c.Schedule(ctx, "train_step", 3)
//	err = c.Join(ctx)
//	loss, err := clustercoordinator.Get[float64](ctx, v)
//
// The functions are those that tasks of the run have registered and serve. A closure
// is called at least once: a call that a task did not end because it died is made
// again by another. The queue is a workflow; it outlives this program, and another
// coordinator that attaches to the run finds the same queue, with what is left to do
// and the values of what is done.
//
// The first error of a closure is returned by the next Schedule, Join or Done, once
// everything else has been cancelled and nothing executes any more; then the queue
// is as new. When Join returns, and when Done says true, nothing is executing, and the
// values of what this coordinator has scheduled are there.
package clustercoordinator
