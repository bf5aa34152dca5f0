// Package lifecycle decides what happens in a run: what is started, what is
// stopped and when, and what the verdict is. It is a pure state machine. A
// [Machine] takes an [Event] and answers with [Action] values for the workflow
// to carry out; it has no context, no clock and no I/O, and the same events
// always bring the same actions. So the rules can be read, tested by scripts
// (testdata/scripts) and fuzzed, apart from how they are carried out.
//
// # The life of a run
//
//	          Begin           the chief's final exit, a wish to stop together
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
// In restart scope "group" a failure leads from running, by way of a stop of
// everything (regrouping), back to placing and the next generation, as long as
// the budget lasts. A timeout, and the end of the grace of a stop together, have the
// stacks of everything written down (capturing) before they stop anything.
//
// A task is live from its [Launch] to its [TaskEnded]. In between its host may
// start any number of processes; the machine hears of those it replaced only
// from [Released]. A later launch of the same task (start-task) has a higher
// number, and events of an earlier one are ignored.
//
// A run whose history gets long goes on in another execution of its workflow, with
// a [Snapshot] of its machine, also while tasks run. [Machine.Quiet] says when, and
// [Resumed] has what lives launched again, under the same numbers.
//
// # What decides
//
// The first of these to come decides how the run ends, and what comes after it
// can only hasten the end: a timeout or a cancellation within the chief's grace
// cuts the grace short and changes no verdict.
//
//   - The chief's final exit, good or bad, where the run depends on the chief. The
//     others have chief_grace, all together, to end by themselves, and failures
//     among them count. With auto_restart they are sealed meanwhile: what fails
//     is not started again. Then those left are stopped.
//   - The final failure of any other task, with on_failure "stop".
//   - A wish that all tasks stop together; see below. It alone can be taken back.
//   - timeout and max_run_time, from Begin. A timeout of 0 has passed before
//     anything could be started, so nothing is. The hosts keep max_run_time by
//     themselves too, and an exit with cause timeout that comes before the timer
//     counts as the timer.
//   - A cancellation, or terminate-all, which is one with SIGKILL. So is an exit
//     with cause operator that no request asked for: the owner of the host has
//     shut it down.
//
// Otherwise the run ends when every task has ended by itself.
//
// # Stopping together
//
// Any task, or an operator, can ask all tasks to stop: TensorFlow's Coordinator, with
// tasks in place of threads. Every host is told ([Tell]), every task learns of it
// there and ends by itself. The first wish wins: later ones, and their errors, change
// nothing and are answered with how the run stands, [Machine.Stopping] (SEED-63).
//
//   - The grace of stop_together counts from the wish on (SEED-59). Until it is over
//     nobody is stopped, whatever ends and however: a failure counts, and the chief's
//     end is one like the others'. Nothing is started any more, nor started again.
//   - Who still runs then is a straggler, and is stopped. So is who still runs when
//     timeout or max_run_time comes first. Stragglers are a failure of the run, named
//     in the words of the seed (SEED-61), unless ignore_live_tasks says otherwise. A
//     cancellation only hastens the end: whom an operator stops is no straggler.
//   - An error that comes with the first wish is a failure of the task that asked, as
//     if its program had reported it, at that moment; its exit code is that of the
//     process if that failed by itself, and else 1. From an operator it is nobody's,
//     with exit code 1. An error of one of clean_errors is no failure, only a reason
//     (SEED-62).
//   - Until the grace is over the stop can be cleared, with its error (SEED-65). Who
//     ended meanwhile has ended, and is judged then: the chief's end begins its grace,
//     a failure stops the others or restarts the group. What a host would have started
//     again is started again, with a new budget. The same wish, by its key, does not
//     stop the run a second time.
//   - In the chief's grace a wish tells every task, and changes neither the time nor
//     what has decided; its error counts, as failures there do.
//
// # What counts as a failure
//
// Only a task's last process counts, and only what nobody asked for: it ended by
// itself, badly, or was lost with its host. What the run stopped, what an
// operator ended, and what ran out of time is no failure, nor is the loss of a
// host under a task that was being stopped. An end that nobody can account for
// counts as a lost host; it must never pass for a success. Whatever comes after
// a cancellation does not count.
//
// A process that had reported an error before we stopped it has failed, when it did
// that: it was on its way out. What it reports because of our stop is no failure. Its
// host tells the two apart by looking before it stops the process, and not by a clock;
// and it lets such a process end by itself for a moment first.
//
// The host says why a process ended, and is believed: who ended by itself in the
// moment before our stop arrived has failed.
//
// Two failures are found only in the exits that [Released] brings. A task whose
// stop met no process, because it waited to be started again, has ended with the
// process before: so the seed has it (MPR-20), and a failure right before the chief's end
// cannot be told from one that waits out its backoff. So a chief that has caught the
// QuarantinedError of a closure and ends well is outlived by the failure of the worker
// that called it last, unless that is back by then. And where time ran out on a
// process, the error that the last finished process before it reported counts, because
// a task that fails again and again says more with its own error than the timeout does.
//
// # The verdict
//
//	an error reported by a program > out of time > unexpected exit > cancelled > success
//
// Stragglers are out of time too, but come last: whatever failed in a stop together
// is a reason for others not to end, and a failure says more than who was waiting.
//
// The order gives the verdict and the type of the error. The exit code, the
// first failure and the message are those of the root cause, the earliest
// failure of whatever kind: by arrival in history, on one host by the host's
// monotonic clock, and on a tie there by rank; a program that wrote its error down
// failed when it did that, not when its process had ended. Wall clocks decide
// nothing between hosts. So an unexpected exit that made another program report an
// error is named first, while the type tells that there is a report to read. A lost
// host ranks with unexpected exits, but as the earliest failure it gives the error
// its type.
//
// A run without failures has succeeded unless an operator ended what its success
// depends on: the chief, where it depends on one, or else every single task.
// Then it is cancelled. One terminated worker among others takes nothing away, nor
// does a straggler that is none of the spec's business.
//
// Exit codes: the root cause's own, 128+N for signal N; 124 out of time; 125 for
// a lost host or no place; 130 cancelled.
//
// # Restarts
//
// In scope "task" the restart of a process is the host's business and costs the
// run no history. Its rules are here, as [RestartPolicy], because they are the
// other half of the same decision.
//
// In scope "group" it is the run's: any failure stops all tasks, and when the last
// has ended everything is placed and launched again, those that had ended well and
// those that were added included (SEED-82). What comes from an older generation is
// ignored. The budget, max_restarts, counts the generations that ended by a
// program's failure; the loss of a host and restart-task, which here means the
// whole group, do not count. Generations that fail quickly follow each other more
// slowly, by the same rule as processes. The timers of the run go on over all of
// them. Between two generations the workflow may continue as new; a [Snapshot] is
// what it takes along.
package lifecycle
