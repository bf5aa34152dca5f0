// Package starter starts cluster runs, finds them, and sends them requests, from Go.
//
// A run is a Temporal workflow that is started by name: this package links nothing that
// executes workflows, activities or processes, so a program that imports it stays small.
// [Start] validates a [spec.RunSpec] and starts it, [Get] finds a run that was started earlier,
// the methods of [Run] wait for its end, pass on its output and return its status, and [Ask] sends
// an operator's requests. [Run.Files] reads what its processes have left behind.
//
// Runs are executed by host workers: `clusterrun worker` on each host, or `clusterrun dev` on
// one. They poll the queue [spec.TaskQueue], to which Start sends a run unless its options name
// another queue.
//
// The end of a run is reported as [os/exec] reports the end of a command: [Run.Wait] returns
// nil only for success, an [*Error] with the whole [spec.RunResult] for a run that failed, and
// a [*TerminatedError] for a run that was terminated without a result.
//
// A [Status] has the facts of the start from the memo, also of a run that has ended or does not
// answer; the rest from the status query and the pending activities, or later from the result.
//
// The clusterrun command is in package command.
package starter
