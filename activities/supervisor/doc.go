// Package supervisor is the small process on a host that is the parent of all
// task processes there. It knows nothing of Temporal. It also starts the program
// that does, the host worker's Temporal-facing side, and starts it again when it
// dies: sides come and go, processes stay.
//
//	          owner (systemd, clusterrun run)
//	            │ signals, lifeline
//	            ▼
//	        supervisor ◄── socketpair, net/rpc ──► side ◄──► Temporal
//	          │  │  │
//	journal ◄─┘  │  └─► ports: abstract sockets
//	             ▼
//	  sessions of task processes ──► log files
//
// [OpenState] locks a state directory and settles what an earlier supervisor
// left in it. [Run] is the supervisor. In the side, [ClientFromEnv] gives a
// [Client], which has the [API]. A program that is both, as the host worker is,
// asks [IsSide] which one it is now. An owner may have the side in its own process, over a
// socket that it gives to the supervisor ([NewOwnersClient]); if it dies, the supervisor
// starts one as usual.
//
// # A process
//
//	Start ─► starting ─► running ─► ending ─► ended     Exit in the journal
//	            │           │                            │
//	            │           └─ unkillable ───────────────┤
//	            └─ cannot be executed: StartError ───────┘
//
// A start is journalled, and the journal synced, before the fork; so a start
// that nobody remembers did not happen, and none happens twice. A volatile state is not
// synced: its runs end with their owner, so a crash of the machine leaves nothing to ask about.
//
// Every process leads a session and a group of its own, has its stdin from /dev/null and its
// output in files or where the owner's goes (one in the foreground has the
// owner's stdin too, and its terminal), and gets a parent-death signal, a cookie in its environment
// and, where the kernel lets us, a cgroup.
//
// A supervisor that is root starts a process as the user of its command: the user is changed
// in the child, before the directory is entered and the parent-death signal set, and the
// files are opened as that user. Nothing of that is left to a program in between.
//
// When the leader ends, whether by itself or because it was stopped, everything
// that it leaves behind gets SIGKILL at once: the group, the cgroup, and orphans
// in other sessions, which fall to us because we are a subreaper. The leader is
// reaped after all of these are gone, and only then has the process ended. See
// [reaper] for how that is done without looking through /proc.
//
// To stop means: the signal to the group, SIGCONT so that a stopped program can
// act on it, and SIGKILL when the grace is over. A program outside the group, a
// daemon, is not asked; it gets SIGKILL with the rest. What is still there a
// bound after SIGKILL, which only the kernel can be the reason of, is reported
// as unkillable and not waited for.
//
// The times of ends are those at which leaders were seen dead, by one clock that
// counts suspension too. Those that were seen in one go have the same time: the
// kernel does not tell which of them was first.
//
// # What survives what
//
//   - The side dies: nothing happens to the processes. Ends that nobody read
//     wait in the journal; reading does not consume them.
//   - The side dies, hangs, or hears nothing of its server: a process with a
//     [Contact] is stopped when nobody has renewed that in time.
//   - Another program takes over ([Upgrade]): it is executed in this process, on the thread that
//     forks, for the parent-death signals of the children of all others are sent then. It has
//     read all that we hold before. A side is started anew. A request to end ([RequestEnd]) is heard
//     whenever it comes. A SIGTERM is not in the two milliseconds or so until Go's runtime is up: it is
//     lost in the first of them, and in the second the runtime ends the program.
//   - The supervisor dies: parent-death signals take the leaders, the side takes
//     the rest (SweepAfterLoss) and leaves. The next OpenState sweeps once more
//     and journals what had no end as Lost. The kernel frees the ports.
//   - Both die: the next OpenState sweeps.
//   - The owner dies: the lifeline ends, everything is stopped with a short
//     grace, the side says what it has to say. The owner can have the same with
//     the signals and graces of its choice ([StopAll]), or have the stops of runs
//     send the signal that it got itself.
//   - The machine dies: what had no end under another boot is Lost.
//   - The disk fills up: starts are refused with ErrJournal; what runs goes on,
//     and ends are kept in memory until they can be written.
//   - A task is started again for weeks: the first process of each launch and the last
//     hundred are known, and so are the first generation and the last hundred. The
//     journal is rewritten without the others each time that it has doubled.
//   - A journal is old: it stays until its run is released here. Only the server knows
//     whether a run is open.
//   - A journal is damaged: it is set aside, and what it does not say any more
//     counts as lost. A torn last line is not damage.
//
// # Who may command
//
// Requests carry a [Fence]; one that is older than the newest seen for its task
// is refused: launches count more than executions of the run's workflow, and those
// more than attempts. Process N+1 of a task is started when N has ended and was granted
// a successor, or under a later launch (start-task). A generation is over once a
// process of a later one was started.
//
// # Bounds
//
// Limits of memory, processor time and processes are those of the process's cgroup, and hold
// from its fork on. Limits of setrlimit(2) hold from the first instruction of the program, which
// is stopped there until they are set. The supervisor has a score that makes the OOM killer
// take it last, where it may have one, and its children have none.
//
// The sizes of output files are looked at ten times a second where a run has a quota. So it may
// write for a tenth of a second what it can, but keeps no more than the quota where the rest is
// dropped.
//
// # Limits
//
// Each leased port is an open file of the supervisor, and so is each task's socket of
// the side: the hard limit (ulimit -n) bounds them. Tasks get the owner's soft limit.
//
// Where there are no cgroups, a program that leaves its session and clears its
// environment cannot be told from another task's. It is killed once every task
// that could have started it has ended; if the supervisor itself is killed, it
// is not found. Programs that change their user may refuse our signals. Of a clusterrun that
// a task has started only root reads the environment: the sweep after a supervisor was
// killed finds its processes, and it ends with its launcher.
//
// MaxRSS is what the kernel says, and it counts what the supervisor had at the
// fork: small programs look a little larger than they are.
//
// Under systemd, use KillMode=mixed: the default sends SIGTERM to the tasks
// behind the supervisor's back, and then they have ended by themselves.
package supervisor
