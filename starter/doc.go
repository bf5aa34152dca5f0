// Package starter starts cluster runs, finds them, and sends them requests, from Go.
//
// A run is a Temporal workflow that is started by name. This package does not link any code that
// executes workflows, activities or processes, so programs that import it remain small. [Start]
// validates a [spec.RunSpec] and starts it. [Get] returns a handle on a run that was started
// earlier. The methods of [Run] wait for the run to finish, pass on its output and return its
// status, and [Ask] sends an operator's requests. [Run.Files] reads the files that its processes
// left behind.
//
// Host workers execute runs: `clusterrun worker` on each host, or `clusterrun dev` on a single
// one. They poll the queue [spec.TaskQueue], to which Start sends a run unless its options name
// another queue.
//
// [Run.Wait] reports a run's outcome in the way that [os/exec] reports a command's. It returns nil
// only for success, an [*Error] with the whole [spec.RunResult] for a failed run, and a
// [*TerminatedError] for a run that was terminated without a result.
//
// A [Status] contains the facts about the start from the memo even if the run has finished or does
// not answer. Everything else comes from the status query and the pending activities while the run
// is open, and from the result afterwards.
//
// Package command implements the clusterrun command.
package starter
