// Package lifecycle decides a run's course: which tasks are started and stopped, when, and how the
// run is judged. It is a pure state machine. A [Machine] receives an [Event] and returns [Action]
// values for the workflow to carry out. It does not use a context, clock or I/O, and the same
// events always produce the same actions. So the rules can be read, tested by scripts
// (testdata/scripts) and fuzzed separately from the code that carries them out.
//
// Inside, an account tracks the run's tasks and their exits, and judges them; an agenda holds the
// actions and the timers; the machine embeds both and decides.
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
// In restart scope "group" a failure stops all tasks (regrouping) and leads from running back to
// placing and the next generation, as long as the budget lasts. A timeout, or an expired
// stop_together grace, captures all tasks' stacks (capturing) before anything is stopped. So does
// on_silence, which leaves the run running during the capture.
//
// A task is live from its [Launch] to its [TaskEnded]. During that time its host may start any
// number of processes; only [Released] reports the replaced ones to the machine. A later launch of
// the same task (`clusterrun start`) gets a higher number, and events of earlier launches are
// ignored.
//
// A run with a long history continues in another execution of its workflow, with a [State] of its
// machine, even while tasks run. [Machine.Quiet] reports when it can, and [Resumed] launches the
// live tasks again, under the same numbers.
//
// # What decides
//
// The first of these events decides the run's verdict. Later events can only hasten the end: a
// timeout or a cancellation within the chief's grace shortens the grace without changing the
// verdict.
//
//   - The chief's final exit, good or bad, if the run depends on the chief. The remaining tasks
//     have chief_grace to exit, and failures among them count. With auto_restart they are sealed
//     during the grace, so a task that fails is not restarted. Then any tasks still running are
//     stopped.
//   - The final failure of any other task, with on_failure "stop".
//   - A request that all tasks stop together; see Stopping together. Only this event can be
//     withdrawn.
//   - timeout and max_run_time, counted from Begin. A timeout of 0 expires before anything can be
//     started, so nothing is. The hosts also enforce max_run_time, and an exit with cause timeout
//     that arrives before the timer counts as the timer.
//   - A cancellation, or terminate-all, which is a cancellation with SIGKILL. An unrequested exit
//     with cause operator is also one, because the host's owner has shut it down.
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
//   - The grace of stop_together counts from the request. Until it is over no task is stopped,
//     however other tasks end. A failure counts, and the chief's end is treated like any task's.
//     Nothing more is started or restarted.
//   - Tasks that still run after the grace are stragglers, and are stopped. So are tasks that still
//     run when timeout or max_run_time expires first. Stragglers fail the run, with the message of
//     TensorFlow's Coordinator, unless ignore_live_tasks is set. A cancellation only hastens the
//     end; a task that an operator stops does not count as a straggler.
//   - An error in the first request counts as the requesting task's failure, at that moment, as if
//     its program had reported it. The exit code is the process's if it failed on its own, and
//     otherwise 1. An operator's error does not belong to a task; its exit code is 1. An error
//     listed in clean_errors is a reason rather than a failure.
//   - Until the grace is over the stop can be cleared, with its error. Tasks that ended in the
//     grace are judged at that point. The chief's end starts its grace, a failure stops the
//     remaining tasks or restarts the group, and tasks that their hosts would have restarted are
//     launched again, with a new budget. The same request, identified by its key, does not stop the
//     run a second time.
//   - In the chief's grace a request reaches every task without changing the time or the
//     decision. Its error counts like a failure in that grace.
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
//     is not a failure, and decides only when all tasks have ended. The run succeeds if all of them
//     have succeeded. A chief that succeeds decides as always.
//   - Of two notices the earlier deadline counts, and stopping the run takes precedence over its
//     return to the queue. Limits and cancellations work as usual. A notice does not hasten a stop
//     in progress.
//   - A notice that arrives between two generations, or while one is being placed, applies to
//     that generation, which is not launched.
//
// With requeue_on, the run also returns to the queue on timeout, max_run_time or, in scope "task",
// a host's loss, as often as max_restarts allows. Its limits then count from the next [Begin],
// without the time in the queue.
//
// # What counts as a failure
//
// Only a task's last process counts, provided that it failed on its own or was lost with its host,
// without being asked to exit. A process that the run or an operator stopped, or that ran out of
// time, did not fail; nor did a process that was lost while it was being stopped. An exit without a
// known cause counts as a lost host, because it must never pass for a success. Nothing after a
// cancellation counts.
//
// A process that reported an error before it was stopped has failed, because it was about to
// exit. An error that it reports because of the stop does not count. The host distinguishes the
// two without a clock: it looks for the report before it stops the process. It first gives such a
// process a moment to exit on its own.
//
// The host reports why a process exited, and is believed. If it exited on its own just before a
// stop arrived, it failed.
//
// If a final failure stops the remaining tasks (on_failure: stop), the root cause is a failure
// that restarts did not fix. A task that waits for its restart at that moment failed earlier, but
// did not end the run.
//
// If a process exited because it lost a peer, and that peer is known, the process is not the root
// cause. If the error that it printed mentions a lost peer, the root cause is the process that had
// printed a different kind of error before, even if that process exited later or was stopped during
// its cleanup. Such an error decides nothing else, since a program may survive it. Hosts give
// processes that print an error a moment to exit (stop.error_grace).
//
// The process that caused the loss may exit after its peers, because it closes its connections
// before it has cleaned up. So a failure for a lost peer stops the remaining tasks only when a task
// has ended with a different kind of error, or every live task waits for other tasks according to
// its stack, or error_grace is over. A task that lives on is named, and so is one that exited with
// 0 at about that time: it may have had less work than its peers.
//
// A process that was stopped for its silence may have waited for another process. The root cause is
// then the first task that the stacks name ([stacktree.Explain]), silent or not; otherwise the
// report calls the cause unknown.
//
// Two failures are known only from the exits in [Released]. A task that was stopped between two
// processes ended with the last one, as in TensorFlow's MultiProcessRunner. A failure right before
// the chief's end looks the same as a failure still in its backoff. So if a chief catches a
// closure's QuarantinedError and succeeds, the last calling worker's failure still counts unless
// that worker is back by then. And if a process runs out of time, the error that the last exited
// process before it reported counts, because a repeated error is more informative than the timeout.
//
// # The verdict
//
//	an error reported by a program > out of time > unexpected exit > cancelled > success
//
// Stragglers are also out of time but come last, because a failure during a stop together may
// explain why other tasks did not exit, and is more informative than the list of waiting tasks.
//
// This order determines the verdict and the type of the error. The exit code, the first failure
// and the message come from the root cause, the earliest failure of any kind: by arrival in
// history; on one host by its monotonic clock, and on a tie by rank. A program that reported an
// error failed when it reported it, not when its process exited. Between hosts wall clocks decide
// nothing, except which error was printed first if a process lost its peer. So an unexpected exit
// that made another program report an error is named first, while the type shows that a program
// reported an error. A lost host ranks with unexpected exits, but as the earliest failure it sets
// the type.
//
// A run without failures has succeeded unless an operator stopped what its success depends on:
// the chief, if it depends on one, or otherwise every task. Then it is cancelled. A single
// terminated worker does not matter.
//
// Exit codes: the root cause's, 128+N for signal N; 124 out of time; 125 for a lost host or a
// failed placement; 130 cancelled.
//
// # Restarts
//
// In scope "task" the host restarts processes, which costs the run no history. The host's rules are
// also in this package, as [RestartPolicy], because they complete the same decision.
//
// In scope "group" the run does. Any failure stops all tasks, and after the last exit all of them
// are placed and launched again, including successful and added ones. Events of an older generation
// are ignored. The budget, max_restarts, counts the generations stopped by a program's failure; a
// host's loss and restart-task, which restarts the whole group in this scope, do not count.
// Generations that fail quickly are delayed, by the same rule as processes. The timers of the run
// span all generations.
//
// A generation of an elastic run has as many tasks as fit on its hosts, with the lowest ranks
// ([Begin]). The run neither waits for the remaining tasks nor reports them.
package lifecycle
