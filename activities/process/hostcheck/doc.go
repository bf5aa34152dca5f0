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
//   - every half minute while it fails, so that the host gets tasks again without a person.
//
// At most one execution of a check is under way. If one cannot be killed, since the kernel waits
// for a disk or a device, the check is failed until it has ended.
//
// Commands are children of the side. If that is killed, the kernel kills them with it, and the next
// side what else they have started: a variable in its environment tells.
package hostcheck
