// Package hostcheck decides whether a host is fit for tasks, by its operator's commands and
// built-in checks.
//
// A check fails if its command does not exit with 0 within [Config.Timeout], after which it is
// killed with everything that it started. A host with a failed check does not get new tasks; its
// present tasks continue.
//
// A [Checker] executes each check once at the start, and again
//
//   - before a host takes the tasks of a generation, if its last result is older than half a minute
//     and took at most a second ([Checker.Admit]);
//   - after [Config.Every] on a host without tasks;
//   - every half minute while it fails, so that the host recovers without a person.
//
// A check runs at most once at a time. If it cannot be killed, because the kernel waits for a disk
// or a device, the check counts as failed until it exits.
//
// Commands are children of the side. If the side is killed, the kernel kills them, and the next
// side kills what they started, which it finds by an environment variable.
package hostcheck
