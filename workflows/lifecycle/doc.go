// Package lifecycle decides a run's course: which tasks are started and stopped, when, and how the
// run is judged. It is a pure state machine. A [Machine] receives an [Event] and returns [Action]
// values for the workflow to carry out. It does not use a context, clock or I/O, and the same
// events always produce the same actions. Therefore, the rules can be read, fuzzed, and tested by
// scripts (testdata/scripts) separately from the code that carries them out.
//
// Internally, an account tracks the run's tasks and judges their exits, and an agenda holds the
// actions and timers. The machine embeds both and makes the decisions.
//
// # The life of a run
//
//	          Begin           the chief's final exit, a request to stop together
//	placing ─────────► running ──────────────────────────► in grace
//	   │ launch all     │   │  ◄──────────────────────────  │    │
//	   │                │   │  the stop together is cleared │    │
//	   │                │   │ a failure (on_failure: stop), │    │
//	   │                │   │ timeout, max-run-time,        │    │
//	   │                │   │ cancel, terminate-all         │    │
//	   │                │   └─────────► stopping ◄──────────┘    │
//	   │ Cancel,        │        stop all  │   the grace, a      │
//	   │ PlacementFailed│                  │   limit, cancel     │
//	   │                │ all have ended   │                     │
//	   │                ▼                  ▼                     │
//	   └───────────► releasing ◄───────────┴─────────────────────┘
//	                    │ Released
//	                    ▼
//	                  ended: Finish, with the result
//
// In restart scope "group", a failure stops all tasks (regrouping). As long as the budget lasts,
// the run then returns from running to placing, for the next generation. When a timeout or the
// grace of stop_together expires, all tasks' stacks are captured (capturing) before anything is
// stopped. on_silence also captures them, but the run keeps running meanwhile.
//
// A task is live from its [Launch] to its [TaskEnded]. During that time its host may start any
// number of processes; only [Released] reports those that were replaced. A later launch of the same
// task (`clusterrun start`) gets a higher number, and events from earlier launches are ignored.
//
// A run with a long history continues in another execution of its workflow, even while tasks are
// running. That execution receives the machine's [State]. [Machine.Quiet] reports when the run can
// continue this way, and [Resumed] launches the live tasks again, under the same numbers.
//
// # What decides
//
// The first of these events decides the run's verdict. Later events can only hasten the end: a
// timeout or a cancellation within the chief's grace shortens the grace without changing the
// verdict.
//
//   - The chief's final exit, good or bad, if the run depends on the chief. The remaining tasks
//     have chief_grace to exit, and their failures count. With auto_restart they are sealed during
//     the grace, so a task that fails is not restarted. After the grace, tasks that are still
//     running are stopped.
//   - The final failure of any other task, with on_failure "stop".
//   - A request that all tasks stop together; see Stopping together. Only this event can be
//     withdrawn.
//   - timeout and max_run_time, counted from Begin. A timeout of 0 expires before any task can be
//     started, so none is. The hosts also enforce max_run_time: if an exit with cause timeout
//     arrives before the timer fires, it has the same effect as the timer.
//   - A cancellation, or terminate-all, which is a cancellation with SIGKILL. An exit with cause
//     operator that was not requested also counts as a cancellation, because the host's owner has
//     shut the host down.
//
// Otherwise the run finishes when every task has exited without being stopped.
//
// # Stopping together
//
// Any task, or an operator, can ask all tasks to stop, like TensorFlow's Coordinator with tasks
// instead of threads. Every host receives the request ([NotifyStopping]) and passes it to its
// tasks, which then exit on their own. The first request wins: later requests, and their errors,
// change nothing. [Machine.Stopping] answers all of them.
//
//   - The grace of stop_together counts from the request. Until it is over, no task is stopped,
//     however other tasks end. A failure counts, and the chief's end is treated like any other
//     task's. Tasks are no longer started or restarted.
//   - Tasks that are still running after the grace are stragglers, and are stopped. The same
//     applies if timeout or max_run_time expires first. Stragglers fail the run, with the message
//     of TensorFlow's Coordinator, unless ignore_live_tasks is set. A cancellation only hastens the
//     end. A task that an operator stops is not a straggler.
//   - An error in the first request counts as a failure of the requesting task at that moment, as
//     if its program had reported it. If the process then failed on its own, its exit code counts;
//     otherwise the exit code is 1. An operator's error does not belong to a task; its exit code is
//     1. An error listed in clean_errors is a reason rather than a failure.
//   - Until the grace is over, the stop and its error can be cleared. Tasks that ended during the
//     grace are judged when it is cleared: if the chief ended, chief_grace starts; a failure stops
//     the remaining tasks or restarts the group; and tasks that their hosts would have restarted
//     are launched again, with a new budget. The same request, identified by its key, does not stop
//     the run a second time.
//   - During the chief's grace, a request is passed to every task, but changes neither the time nor
//     the decision. Its error counts like any failure during that grace.
//
// # A notice
//
// A draining host or an operator may give the tasks notice that they will be stopped at a deadline
// ([GiveNotice]), so that they can save their work. Every host receives the notice
// ([NotifyStopping]) and stops restarting tasks.
//
//   - At the deadline the remaining tasks are stopped. The next generation then returns to the
//     queue ([RestartGroup.Requeue]) or, if the notice requires it, the run finishes as preempted.
//   - A task that fails on its own after the notice, or is lost with its host, was preempted. That
//     is not a failure, and is considered only when all tasks have ended. If all of them have
//     succeeded, the run succeeds. A chief that succeeds decides the run as usual.
//   - If there are two notices, the earlier deadline counts, and stopping the run takes precedence
//     over returning it to the queue. Limits and cancellations work as usual. A notice does not
//     hasten a stop that is in progress.
//   - A notice that arrives between two generations, or while one is being placed, applies to the
//     next generation, which is then not launched.
//
// With requeue_on, the run also returns to the queue on timeout, max_run_time or, in scope "task",
// the loss of a host, as often as max_restarts allows. Its limits then count from the next [Begin],
// without the time in the queue.
//
// # What counts as a failure
//
// A failure counts only if it is that of a task's last process, and if that process failed on its
// own or was lost with its host, without having been asked to exit. A process that the run or an
// operator stopped, or that ran out of time, did not fail; nor did a process that was lost while it
// was being stopped. An exit without a known cause counts as a lost host, because it must never be
// taken for a success. Failures after a cancellation do not count.
//
// A process that reported an error before it was stopped has failed, because it was about to exit.
// An error that it reports because of the stop does not count. The host needs no clock to
// distinguish these cases, because it looks for the report before it stops the process. It gives a
// process that has reported an error a moment to exit on its own.
//
// The host's report of why a process exited is final. If a process exited on its own just before a
// stop arrived, it failed.
//
// If a final failure stops the remaining tasks (on_failure: stop), the root cause is a failure that
// restarts did not fix. A task that is waiting for its restart at that moment failed earlier, but
// did not end the run.
//
// If a process exited because it lost a peer, and that peer is known, the process is not the root
// cause. If the error that it printed mentions a lost peer, the root cause is the process that
// printed a different kind of error earlier, even if that process exited later or was stopped
// during its cleanup. Printed errors do not decide anything else, since a program may survive them.
// Hosts give processes that print an error a moment to exit (stop.error_grace).
//
// The process that caused the loss may exit after its peers, because it closes its connections
// before it has cleaned up. So a failure due to a lost peer stops the remaining tasks only when a
// task has ended with a different kind of error, when the stacks show that every live task is
// waiting for other tasks, or when error_grace is over. The result then names a task that did not
// exit, or one that exited with 0 at about that time, perhaps because it had less work than its
// peers.
//
// A process that was stopped because it was silent may have been waiting for another process. The
// root cause is then the first task that the stacks name ([stacktree.Explain]), whether silent or
// not. If they do not name any, the report calls the cause unknown.
//
// Two failures are known only from the exits in [Released]. If a task was stopped between two
// processes, the exit of the first of them is final, as in TensorFlow's MultiProcessRunner. A
// failure right before the chief's end looks the same as a failure still in its backoff. So if a
// chief catches a closure's QuarantinedError and succeeds, the last calling worker's failure still
// counts unless that worker is running again by then. And if a process runs out of time, the error
// that its predecessor reported counts, because a repeated error is more informative than the
// timeout.
//
// # The verdict
//
//	an error reported by a program > out of time > unexpected exit > cancelled > success
//
// Stragglers are also out of time, but rank last, because a failure after a request to stop
// together may explain why other tasks did not exit, and is then more informative than a list of
// the tasks that were waiting.
//
// This order determines the verdict and the type of the error. The exit code, the first failure and
// the message come from the root cause, which is the earliest failure of any kind. Failures are
// ordered by their arrival in the history; on one host, by its monotonic clock; and if they tie, by
// rank. A program that reported an error failed when it reported it, not when its process exited.
// Wall clocks of different hosts are not compared, except to determine which error was printed
// first if a process lost its peer. So if an unexpected exit made another program report an error,
// the exit is named first, while the type shows that a program reported an error. A lost host ranks
// with unexpected exits, but if it is the earliest failure, it determines the type.
//
// A run without failures has succeeded, unless an operator stopped what its success depends on: the
// chief or, if it does not depend on one, every task. Such a run is cancelled. A single terminated
// worker does not matter.
//
// The exit code is that of the root cause, or 128+N if it was killed by signal N. It is 124 if the
// run is out of time, 125 for a lost host or a failed placement, and 130 if the run was cancelled.
//
// # Restarts
//
// In scope "task", the host restarts processes, which does not add to the run's history. The host's
// rules are also in this package, as [RestartPolicy], because they are part of the same decision.
//
// In scope "group", the run restarts them. Any failure stops all tasks. After the last exit, all
// tasks are placed and launched again, including those that succeeded and those that were added.
// Events of an older generation are ignored. The budget, max_restarts, counts the generations that
// were stopped by a program's failure. The loss of a host and restart-task, which restarts the
// whole group in this scope, do not count. Generations that follow quick failures are delayed by
// the same rule as processes. The run's timers span all generations.
//
// A generation of an elastic run has as many tasks as fit on its hosts, with the lowest ranks
// ([Begin]). The run neither waits for nor reports the remaining tasks.
package lifecycle
