// Package lifecycle decides the course of a run: which tasks are started and stopped, when, and
// with which verdict. It is a pure state machine. A [Machine] takes an [Event] and returns
// [Action] values for the workflow to carry out. It has no context, no clock and no I/O, and
// the same events always give the same actions. So the rules can be read, tested by scripts
// (testdata/scripts) and fuzzed apart from the code that carries them out.
//
// Inside, an account of the run has its tasks and their ends, and judges them; an agenda has
// the actions and the timers; the machine embeds both and decides.
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
// In restart scope "group" a failure stops all tasks (regrouping) and leads from running back
// to placing and the next generation, as long as the budget lasts. A timeout, and the end of
// the grace of a stop together, capture the stacks of all tasks (capturing) before they stop
// anything. So does on_silence, which leaves the run running during the capture.
//
// A task is live from its [Launch] to its [TaskEnded]. In between its host may start any number
// of processes; the machine learns of replaced ones only from [Released]. A later launch of the
// same task (`clusterrun start`) has a higher number, and events of an earlier one are ignored.
//
// A run whose history gets long continues in another execution of its workflow, with a
// [State] of its machine, even while tasks run. [Machine.Quiet] reports when it can, and
// [Resumed] launches the live tasks again, under the same numbers.
//
// # What decides
//
// The first of these decides how the run ends. Later events can only hasten the end: a timeout
// or a cancellation within the chief's grace cuts the grace short and does not change the
// verdict.
//
//   - The chief's final exit, good or bad, if the run depends on the chief. The other tasks
//     have chief_grace to end by themselves, and failures among them count. With auto_restart
//     they are sealed during the grace: a task that fails is not restarted. Then the tasks
//     that are left are stopped.
//   - The final failure of any other task, with on_failure "stop".
//   - A request that all tasks stop together; see below. Only this can be withdrawn.
//   - timeout and max_run_time, counted from Begin. A timeout of 0 passes before
//     anything can be started, so nothing is. The hosts enforce max_run_time too, and
//     an exit with cause timeout that arrives before the timer counts as the timer.
//   - A cancellation, or terminate-all, which is a cancellation with SIGKILL. An exit
//     with cause operator that no request asked for is one too: the owner of the host
//     has shut it down.
//
// Otherwise the run ends when every task has ended by itself.
//
// # Stopping together
//
// Any task, or an operator, can ask all tasks to stop: TensorFlow's Coordinator, with tasks
// instead of threads. Every host receives the request ([NotifyStopping]), and every task learns of it
// there and ends by itself. The first request wins: later ones, and their errors, change
// nothing. [Machine.Stopping] answers all of them.
//
//   - The grace of stop_together counts from the request. Until it is over no task is stopped,
//     however others end: a failure counts, and the chief's end is treated like the others'.
//     Nothing more is started or restarted.
//   - Tasks that still run then are stragglers, and are stopped. So are tasks that still run
//     when timeout or max_run_time passes first. Stragglers fail the run, in the words of
//     TensorFlow's Coordinator, unless ignore_live_tasks is set. A cancellation only hastens
//     the end: a task that an operator stops does not count as a straggler.
//   - An error that comes with the first request is a failure of the task that asked, at that
//     moment, as if its program had reported it. The exit code is the process's if it failed
//     by itself, and else 1. An operator's error belongs to no task and has exit code 1. An
//     error of one of the clean_errors is a reason rather than a failure.
//   - Until the grace is over the stop can be cleared, with its error. Tasks that ended in the
//     grace are judged then: the chief's end begins its grace, a failure stops the others or
//     restarts the group, and tasks that their hosts would have restarted are launched again,
//     with a new budget. The same request, by its key, does not stop the run a second time.
//   - In the chief's grace a request reaches every task and changes neither the time nor the
//     decision. Its error counts, as failures in that grace do.
//
// # A notice
//
// The queue, a host that drains or an operator may give the tasks notice that they are stopped
// at a deadline ([GiveNotice]), so that they save their work. Every host learns of it ([NotifyStopping]),
// and restarts nothing from then on.
//
//   - At the deadline the tasks that are left are stopped. The next generation then returns to
//     the queue ([RestartGroup.Requeue]) or, if the notice says so, the run ends as preempted.
//   - A task that fails by itself after the notice, or is lost with its host, has been
//     preempted: that is not a failure, and decides when all have ended. If all have ended well,
//     the run has succeeded. A chief that ends well decides as always.
//   - Of two notices the earlier deadline counts, and the end of the run rather than its return
//     to the queue. Limits and cancellations have their usual effect. A notice that comes while
//     the run is ending hastens nothing.
//   - A notice that comes between two generations, or while one is being placed, is for that
//     generation, which is not launched.
//
// With requeue_on, timeout and max_run_time, and the loss of a host in scope "task", return the
// run to the queue as well, as often as max_restarts allows. The limits of a run that has
// returned to the queue count from its next [Begin]: the time in between is not its own.
//
// # What counts as a failure
//
// Only the last process of a task counts, and only if it was not asked to end: it ended by
// itself, badly, or was lost with its host. A process that the run or an operator stopped, or
// that ran out of time, has not failed; nor has a process that was lost while it was being
// stopped. An end without a known cause counts as a lost host; it must never pass for a
// success. Nothing after a cancellation counts.
//
// A process that had reported an error before it was stopped has failed: it was on its way out.
// An error that it reports because of the stop does not count. The host distinguishes the two
// by a look for the report before it stops the process, and without a clock; and it first gives
// such a process a moment to end by itself.
//
// The host reports why a process ended, and is believed: a process that ended by itself
// just before a stop arrived has failed.
//
// If a final failure stops the others (on_failure: stop), the root cause is a failure that
// restarts did not mend. A task that waits for its restart at that moment has failed before,
// but did not end the run.
//
// A process that ended because it lost a peer is not the root cause if the peer is known: if
// the error that it printed speaks of a lost peer, the root cause is the process that had
// printed an error of its own before, though it ended later or was stopped within its cleanup.
// Such an error decides nothing else, since a program may survive it. Hosts give processes that
// show an error a moment to end by themselves (stop.error_grace).
//
// The process that made the others lose their peer may end after them, with its connections
// closed while it still cleans up. So a failure for a lost peer stops the others only when
// a task has ended with an error of its own, or no task lives that does not wait for others
// according to its stack, or error_grace is over. A task that lives on is named, and so is one
// that has ended with 0 at about that time: it may have had less work than the others.
//
// A process that was stopped for its silence may have waited for another process. The root
// cause is then the first task that the stacks name ([stacktree.Explain]), silent or not; if
// they name none, the report says that it cannot tell.
//
// Two failures are known only from the exits that [Released] brings. A task that was stopped
// between two processes has ended with the last one, as in TensorFlow's MultiProcessRunner. A
// failure right before the chief's end looks the same as a failure whose backoff is not over.
// So if a chief catches the QuarantinedError of a closure and ends well, the failure of the
// worker that called it last still counts unless that worker is back by then. And if a process
// runs out of time, the error that the last finished process before it reported counts: if a
// task fails again and again, its own error is more informative than the timeout.
//
// # The verdict
//
//	an error reported by a program > out of time > unexpected exit > cancelled > success
//
// Stragglers are out of time too but come last: a failure in a stop together may be the reason
// why others did not end, and is more informative than the list of waiting tasks.
//
// This order gives the verdict and the type of the error. The exit code, the first failure and
// the message come from the root cause, the earliest failure of any kind: by arrival in
// history; on one host by its monotonic clock, and on a tie by rank. A program that reported an
// error failed when it reported it, not when its process ended. Between hosts wall clocks
// decide nothing, except which error was printed first if a process lost its peer. So an
// unexpected exit that made another program report an error is named first, while the type
// shows that a program has reported an error. A lost host ranks with unexpected exits, but as
// the earliest failure it sets the type.
//
// A run without failures has succeeded unless an operator ended what its success depends
// on: the chief, if it depends on one, or else every task. Then it is cancelled. One
// terminated worker among others does not matter.
//
// Exit codes: the root cause's, 128+N for signal N; 124 out of time; 125 for a lost host or a
// failed placement; 130 cancelled.
//
// # Restarts
//
// In scope "task" the host restarts processes, which costs the run no history. Its rules
// are here, as [RestartPolicy], because they are the other half of the same decision.
//
// In scope "group" the run does: any failure stops all tasks, and when the last has ended
// all of them are placed and launched again, including those that had ended well and those
// that were added. Events of an older generation are ignored. The budget, max_restarts,
// counts the generations that ended by a program's failure; the loss of a host and
// restart-task, which here restarts the whole group, do not count. Generations that fail
// quickly follow each other more slowly, by the same rule as processes. The timers of the
// run span all generations.
//
// A generation of an elastic run has as many tasks as its hosts have room for, with the lowest
// ranks ([Begin]). The others are not part of it: the run neither waits for them nor reports
// them.
package lifecycle
