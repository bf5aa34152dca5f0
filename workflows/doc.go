// Package workflows contains clusterrun's workflows. ClusterRun carries out one run, TaskGroup runs
// a large run's tasks on one host, Shared keeps a value for a large run's hosts, Fleet tracks a
// queue's hosts, and Barrier carries out one barrier round.
//
// The package does not decide anything. It passes a run's events to the pure machine of package
// lifecycle and carries out the actions that the machine returns. It starts and cancels activities,
// sets timers and answers updates. Fleet does the same for package fleet, and Barrier for package
// barrier.
//
//	            ┌────────── update, cancellation, timer, activity ended
//	            ▼
//	 decode ─► Reserve ─► Prepare ─► events ─► machine ─► actions ─► Release ─► result
//	   │          │                     ▲                    │
//	   ▼          ▼                     └────────────────────┘
//	InvalidRunSpec  PlacementError       RunTask, SignalTasks, …
//
// clusterrun.go implements a run's loop. Its parts are the placer (place.go, and grant.go for hosts
// of the fleet), the requests to hosts (onhosts.go, together.go), the move to another execution
// (handover.go), the release (release.go) and the status that users see (status.go). launch.go
// implements the RunTask activities, taskgroup.go the groups of large runs, fleet.go the fleet,
// requests.go the update handlers, updates.go the answers, and policies.go the activity options.
//
// Released histories must replay forever. After any change to this package, the histories in
// testdata/replay must still replay.
//
// # Placement
//
// A run on a shared queue signals the fleet's workflow, which answers with a signal that assigns
// tasks to host workers. The hosts decide last: if one refuses, the remaining hosts release what
// they reserved, and the run asks again. The next generation of a group stays on its hosts, unless
// a host was lost or is draining.
//
// An elastic run requests a range of hosts (elastic.go), and a generation includes as many tasks as
// fit on the granted hosts: hosts receive a spec that contains only these tasks. The run asks again
// for each generation that has lost a host, or may grow, and, if it must wait, keeps its age.
//
// A run with its own hosts does not ask the fleet. An address names a task's host; all tasks
// without one go together to one host that accepts them. Tasks of both kinds may land on the same
// host, which then counts as one host with one order of local ranks. On a local queue
// ([spec.LocalQueue]), Reserve and Release are local activities, part of the workflow tasks before
// and after the tasks run (call.go). So is RunTask for a tenth of a second, which makes a short run
// a single workflow task (launch.go). If the home worker is killed in that time, the server hands
// out the workflow task again after [spec.WorkflowTaskTimeout].
//
// Two tasks may turn out to be pinned to the same port of one machine that has two names and two
// host workers. The supervisors detect this from the names of the sockets that hold the ports, and
// the run is refused immediately. If another run holds the port, the run waits for it.
//
// # Requests
//
// A run checks a request before it accepts it, and the host checks again before it starts a task,
// because a failed start fails the run and a typing error must not. A refusal names its tasks, so
// that a command can repeat the request for the remaining ones. A restart of a program that is gone
// leaves the task running; in restart scope "group" the next reservation finds out, after the group
// was stopped.
//
// While tasks are being placed, servePlacing (updates.go) answers requests, and refuses those that
// it does not handle.
//
// # Stopping
//
// Canceling an activity means asking the process to exit, waiting for the grace, killing the
// process, and never starting another. On a local queue, StopTasks also asks the host within the
// workflow task, which is faster. A request that leaves the task in place (terminate with
// auto_restart, restart, signal) is a separate short activity. Once the chief has exited, SealTasks
// makes each host stop restarting, so that a failure during the grace is final. When the timeout
// expires, CaptureStacks records the processes' stacks, for at most 10 s, before they are stopped.
// A host that finds all its tasks silent sends the update silent, and the run also captures stacks
// before it carries out on_silence. max_run_time is a hard limit, and no stacks are captured when
// it expires; the supervisors also enforce it, even during outages.
//
// A request to stop together is the update stop-together, which the requesting task's host sends.
// It cannot be withdrawn. The machine answers it, and every notice, immediately with a numbered
// Stopping. TellStopping brings it to the hosts, and is retried until the run ends. The numbers
// order a host's messages, so that the order of arrival does not matter. The reservation of a
// group's next generation carries the last Stopping. The update's ID consists of the generation,
// the task and the key, so a repeated update is recognized as a duplicate. A run handles ten
// updates at a time and all tasks often ask together, so a host asks for one task after another,
// and answers without the run once it has received a stop.
//
// # Group restarts
//
// In restart scope "group" the run restarts tasks, not the host. A failure cancels all RunTask
// activities. When the last one has returned, the tasks are reserved again for a new generation,
// with fresh ports. The previous hosts are asked first. Keys and events contain the generation, so
// both the supervisor and the machine refuse anything from an older one. An activity that closed
// without a process exit proves nothing; for example, the server cancels an activity that no worker
// holds. Before the next generation is placed, the activity's host must settle, which means that it
// stops the old processes and fences them off. The run waits until none of them can be alive.
//
// # Large runs
//
// A workflow may have at most 2,000 open activities and 51,200 events in its history, and it must
// repeat a workflow task during which more than 100 events arrive. Therefore, a run that launches
// more than 250 tasks together starts TaskGroup workflows, each for at most 250 tasks of one host.
// A TaskGroup starts their RunTask activities, and reports their results to the run in batches. It
// decides nothing and starts nothing later. The run itself carries single launches, for example by
// start-task. For hosts, the only difference is that the activity belongs to another workflow.
//
// Inputs that are the same for all hosts would make the history grow quadratically with the hosts.
// If the spec and the cluster exceed 1 MiB in all hosts' inputs together, a Shared workflow keeps
// each of them in its input (shared.go), and the hosts' inputs name that workflow. The hosts read
// its history from the server. It stays open until all hosts have answered, so that the server's
// retention does not remove it.
//
// Like activities, groups belong to one execution of the run. The server terminates them when
// that execution closes. The hosts then find that the server does not recognize the attempts, and
// ask whether the run continues. If groups outlived the execution, they would have to detect that
// their run is gone, and a run would not receive the results of groups that an earlier execution
// started.
//
// # Long runs
//
// When the server suggests it, a run continues in another workflow execution, with the machine's
// state, between two generations or at a quiet moment of one. To reach such a moment it refuses
// requests for up to 10 s at a time, with the error TryAgain, which makes the Go API, commands and
// hosts repeat them. Requests that end the run are accepted. A large number of tasks does not make
// a run continue, because a large run with all tasks exiting is about to finish. If something
// happens at the very moment, the server refuses the change and the run handles the event first.
//
// When the old execution closes, the server closes its activities and groups. Hosts find that the
// server no longer recognizes their attempts, and leave the processes running. The next execution
// launches all live tasks again, and its attempts find each process either alive, or exited with
// its exit not yet reported. Activities carry the run's first execution, by which hosts identify
// the run, so plans, journals, sockets, the closure queue and barriers remain. The supervisor's
// fence includes the number of the execution between launch and attempt. A host's reconciler does
// not stop anything until an execution's first workflow task has started the activities.
//
// # Barriers across hosts
//
// A barrier round is an execution of Barrier with the ID
// <run>/barrier/<execution>/<generation>/<name>/<round>. The first host with an arrival starts it
// by sending the signal that carries the arrival; all hosts then wait for its result. The run's
// workflow is not involved: even 10,000 barriers do not add an event to it. While a round waits,
// one activity on a waiting host, BarrierCheck, asks the run whether the missing tasks can still
// arrive. It asks after 1, 2, 4 … 60 s, and returns once a missing task can no longer arrive. The
// repetitions do not add events, so a round has 11 events after a second, and still 11 after a
// week. Tasks that come and go during the round do add events; a round with a long history
// continues in another execution. Package activities/tasks/barriers explains the reasoning.
//
// # Search attributes
//
// A workflow task that sets an attribute unknown to the namespace fails forever, and only the
// server can list its attributes. So the starter starts a run with all attributes that the server
// accepts, and the run sets only those. If another client started the run without attributes, the
// run queries the server once, in a local activity, and sets all attributes that the namespace
// defines. A server drops empty attributes, so ClusterRunVerdict and ClusterRunHost start as
// "none". The hosts change with the generation, and the verdict is set at the end; a terminated
// run's verdict stays "none".
//
// # Released versions
//
// A run may live for months and be replayed by several versions of this code, so histories since
// 0.5.0 must replay forever. TestReplay replays the histories in testdata/replay, one folder per
// version. A change that breaks replay must be guarded by [workflow.GetVersion], and the inputs of
// continued workflows must stay readable. `make record` adds histories for the version in package
// spec.
package workflows
