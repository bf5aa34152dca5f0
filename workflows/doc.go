// Package workflows contains the ClusterRun workflow, which carries out one run, the TaskGroup
// workflow, which carries tasks of a large run on one host, the Shared workflow, which keeps a value for
// the hosts of a large run, the Fleet workflow, which knows the
// hosts of a queue, the Barrier workflow, which carries out one round of a barrier.
//
// It decides nothing. It passes each event of a run to the pure machine of package lifecycle,
// and carries out the actions that the machine returns: it starts and cancels activities, sets
// timers and answers updates. Fleet does the same for package fleet, and Barrier for package
// barrier.
//
//	            ┌────────── update, cancellation, timer, activity ended
//	            ▼
//	 decode ─► Reserve ─► Prepare ─► events ─► machine ─► actions ─► Release ─► result
//	   │          │                     ▲                    │
//	   ▼          ▼                     └────────────────────┘
//	InvalidRunSpec  PlacementError       RunTask, SignalTasks, …
//
// clusterrun.go has the loop of a run and its parts: the placer (place.go, and grant.go for
// hosts of the fleet, which is in fleet.go), the requests to hosts (onhosts.go, together.go),
// the change to another execution (handover.go), the end (release.go) and the status that
// people see (status.go). launch.go has the RunTask activities, taskgroup.go the groups of
// large runs, requests.go the handlers of updates, updates.go the answers, and policies.go the
// options of all activities.
//
// Released histories must replay for ever: changes here must keep the histories in
// testdata/replay replaying.
//
// # Placement
//
// A run on a shared queue sends a signal to the workflow of the fleet, which answers with a
// signal that assigns tasks to host workers. The hosts have the last word: if one refuses, the
// others release what they reserved, and the run asks again. The next generation of a group
// stays on its hosts, unless a host was lost or drains.
//
// An elastic run asks for a range of hosts (elastic.go), and the generation has as many of the
// tasks as the grant has room for: hosts receive a spec of just these. It asks for each
// generation that has lost a host, or may have more, and keeps its age if it must wait.
//
// A run with hosts of its own does not ask the fleet. Tasks without an address go together to
// one host that takes them; an address names its host. Tasks of both kinds may land on the same
// host, which is then one host of the run with one order of local ranks. On a local queue
// ([spec.LocalQueue]) Reserve and Release are part of the workflow task before and after the
// tasks run, as local activities (call.go).
//
// Two tasks may turn out to be pinned to one port of one
// machine, under two names of it and on two host workers. The supervisors notice, by the
// names of the sockets that hold ports, and the run is refused at once; a port that
// another run holds is waited for.
//
// # Requests
//
// A run checks a request before it accepts it, and the host checks once more before a
// task is started: a start that fails is a failure of the run, and a typing error must
// not end the run. A refusal names its tasks, so that a command can repeat the request
// for the others. A restart whose program is gone leaves the task running; in restart
// scope "group" the next reservation finds out, after the group was stopped.
//
// While tasks are placed, servePlacing (updates.go) answers. It refuses requests that have no
// case there.
//
// # Stopping
//
// To cancel an activity means: ask the process to end, wait the grace, kill it, and never start
// another. A request that leaves the task in place (terminate with auto_restart, restart,
// signal) is a short activity of its own. Once the chief has ended, SealTasks makes each host
// restart nothing, so that a failure in the grace is final. When the timeout passes,
// CaptureStacks writes down the stacks of the processes, for at most 10 s, before they are
// stopped. A host that finds all its tasks silent sends the update silent, and the run does the
// same before it carries out on_silence. max_run_time is hard and captures nothing; the
// supervisors enforce it too, which holds through outages.
//
// A request to stop together is the update stop-together, sent by the host of the task that
// asks; clear-stop withdraws it. The machine answers both at once with a numbered Stopping.
// TellStopping brings it to the hosts, and is retried for as long as the run lives. The numbers
// order the messages to a host, so that the order of arrival does not matter. A stop can be
// withdrawn, so it differs from the seal of the chief's grace, which cannot. For the same
// reason the next generation of a group is reserved with the last Stopping. The ID of the
// update is made of generation, task and key, so that a repeated update is the same. A run
// takes ten updates at a time and all tasks often ask at once: a host asks for one task after
// the other, and answers by itself once it knows of a stop. A clear from elsewhere that has not
// arrived yet withdraws such a request as well.
//
// # Group restarts
//
// In restart scope "group" the run restarts, not the host: a failure cancels all RunTask
// activities, and when the last has returned the tasks are reserved again, for a new generation
// with fresh ports. The hosts that had them are asked first. Everything older is refused: by
// the supervisor, because its keys contain the generation, and by the machine, because events
// do. An activity that closed without an exit of its process proves nothing; for example, the
// server cancels an activity that no worker holds. Before the next generation is placed, its
// host must settle: it ends and fences off the old processes. The run waits until none can be
// left.
//
// # Large runs
//
// A workflow may have 2,000 activities open, its history 51,200 events, and it begins a
// workflow task again during which more than 100 events come. So a run that launches more than
// 250 tasks at once starts TaskGroup workflows, each for at most 250 tasks of one host. A
// TaskGroup starts their RunTask activities, and reports their ends to the run in batches. It
// decides nothing and starts nothing later: the run itself carries single launches, for example
// by start-task. A host sees no difference but in whose activity it is.
//
// What all hosts receive would make the history grow with the square of their number. If the spec and
// the cluster for all hosts have more than 1 MiB together, a workflow of type Shared has each of them
// in its input (shared.go), and the inputs of the hosts name that workflow. The hosts read its history
// from the server. It stays open until all hosts have answered, so that no retention removes it.
//
// Groups belong to one execution of the run, like its activities. The server terminates them
// whenever that closes: the hosts then find that the server does not know the attempts, and ask
// whether the run continues. The alternative, groups that outlive the execution, would have to
// find out by themselves that their run is gone, and a run would not receive the end of a group
// that an earlier execution had started.
//
// # Long runs
//
// When the server suggests it, a run continues in another execution of its workflow, with a
// state of the machine: between two generations, or at a quiet moment of one. To get to such
// a moment it refuses requests for up to 10 s at a time, with the error TryAgain, after which
// the Go API, commands and hosts repeat them; requests that end the run are accepted. Many
// tasks do not by themselves make a run continue: a large one whose tasks all end is about to
// end itself. If something happens at the very moment, the server refuses the change and the
// run handles that first.
//
// The server closes the activities and groups with the old execution; their attempts find that
// the server does not know them, and leave the processes running. The next execution launches
// all live tasks again, and its attempts find the processes alive, or ended but not judged.
// Hosts know a run by its first execution, which activities carry, so plans, journals, sockets,
// the queue of closures and barriers stay; the fence of the supervisor has the number of the
// execution between launch and attempt. Until the first workflow task of an execution it has no
// activities, so the reconciler of a host stops nothing before.
//
// # Barriers across hosts
//
// A round of a barrier is an execution of Barrier with the ID
// <run>/barrier/<execution>/<generation>/<name>/<round>. The first host with an arrival
// starts it, with the signal that carries the arrival; hosts wait for its result. The
// run's own workflow is not involved: 10,000 barriers add no event to it. While a round
// waits, one activity on a waiting host, BarrierCheck, asks the run whether the missing
// tasks can still come. It lasts while they can and looks after 1, 2, 4 … 60 s, which
// leaves no events, so a round has 11 events after a second and no more after a week.
// Tasks that come and go while others wait do cost events; a round whose history gets
// long continues in another execution. Package activities/tasks/barriers has the reasoning.
//
// # Search attributes
//
// A workflow task that sets an attribute unknown to the namespace fails for ever, and only the
// server knows its attributes. So the starter starts a run with all of them except those that
// the server refuses, and the run sets only those it was started with. If others have started it,
// with none, it asks the server once, in a local activity, and sets all that the namespace has. A
// server drops empty attributes, so ClusterRunVerdict and ClusterRunHost begin as "none". The hosts change with
// the generation and the verdict is set at the end; the verdict of a terminated run stays
// "none".
//
// # Released versions
//
// A run lives for months and may meet several versions of this code, so released histories must
// replay for ever, from 0.5.0 on: TestReplay replays the histories below testdata/replay, a
// folder for each version. A change that a history does not replay with goes behind
// [workflow.GetVersion], and the input of a workflow that continues as new stays readable.
// `make record` adds the histories of the version in package spec.
package workflows
