// Package task is for Go programs that clusterrun runs. It provides barriers with other tasks, a
// way to stop together, the task's result, error and progress, and the list of all tasks.
//
//	t, err := task.Current()
//	if err != nil {
//		return err // not started by clusterrun
//	}
//	if _, err := t.Barrier(ctx, "data is loaded"); err != nil {
//		return err
//	}
//	for epoch := 0; epoch < epochs && !t.ShouldStop(); epoch++ {
//		if err := train(); err != nil {
//			return errors.Join(err, t.RequestStop(ctx, err)) // all others stop, too
//		}
//		t.Progress(ctx, epoch, epochs, "loss 0.3")
//	}
//	return t.Result(ctx, accuracy)
//
// A task can also offer functions that a coordinator schedules:
//
//	functions := task.NewFunctions()
//	if err := functions.Register("step", func(ctx context.Context, rate float64) (float64, error) { ... }); err != nil {
//		return err
//	}
//	return t.Serve(ctx, functions, task.Slots(4)) // until the tasks of the run stop together
//
// The host may be briefly unavailable, because its host worker can restart at any time. All calls
// retry until their context is done. Sending one twice is harmless.
package task
