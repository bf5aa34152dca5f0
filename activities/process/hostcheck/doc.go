// Package hostcheck decides whether a host is fit for tasks, by commands of its operator and by
// built-in checks.
//
// A check has failed if its command does not exit with 0, or does not end within [Config.Timeout];
// it is killed then, with everything that it has started. A host with a failed check gets no new
// tasks; those that it has continue.
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
