// Package hostcheck decides whether a host is fit for tasks, by executing commands of its operator
// and built-in checks.
//
// A check fails if its command does not exit with 0 within [Config.Timeout]. When this time is
// over, the command and everything that it started are killed. While a check fails, the host does
// not get new tasks, but its present tasks continue.
//
// A [Checker] executes each check once at the start, and again
//
//   - before a host takes the tasks of a generation, if its last result is older than half a minute
//     and took at most a second ([Checker.Admit]);
//   - after [Config.Every] on a host without tasks;
//   - every half minute while it fails, so that the host recovers without intervention.
//
// A check runs at most once at a time. If an execution cannot be killed because the kernel waits
// for a disk or a device, the check counts as failed until the execution ends.
//
// Commands are children of the side. If the side is killed, the kernel kills the commands. The next
// side kills the processes that the commands started, which it finds by an environment variable.
package hostcheck
