// Package supervisor is the small process on a host that is the parent of all task processes
// there. It does not use Temporal. It also starts the host worker's side, the program that
// does, and restarts it when it dies: sides come and go, processes stay.
//
//	          owner (systemd, clusterrun run)
//	            │ signals, lifeline
//	            ▼
//	        supervisor ◄── socketpair, gob ──► side ◄──► Temporal
//	          │  │  │
//	journal ◄─┘  │  └─► ports: abstract sockets
//	             ▼
//	  sessions of task processes ──► pipes ──► supervisor ──► log files
//
// [OpenState] locks a state directory and settles what an earlier supervisor left in it.
// [Run] is the supervisor. In the side, [ClientFromEnv] returns a [Client], which has the
// [API]. An owner may have a side in another process, over a socket that it gives to the
// supervisor ([NewOwnersClient]); if that process dies, the supervisor starts a side as usual.
//
// # Parts
//
// The supervisor handles the requests of the side, and all endings. It works on a
// table of runs, whose lock guards all processes too, with parts that have state of their own:
//
//	launcher    opens files and forks; package fork, package output, cgroups
//	stopper     signals, graces, deadlines and kills
//	reaper      notices ends, attributes what leaders leave behind, and reaps
//	sideKeeper  the side and its upgrades
//	guard       see What survives what
//	journal     the file of a run; ports.Ports has its leases
//
// # A process
//
//	Start ─► starting ─► running ─► ending ─► ended     Exit in the journal
//	            │           │                            │
//	            │           └─ unkillable ───────────────┤
//	            └─ cannot be executed: StartError ───────┘
//
// A start is journalled, and the journal synced, before the fork. A start that is not in the
// journal therefore did not happen, and none happens twice. A volatile state is not synced:
// its runs end with their owner, so they are not needed after a crash of the machine.
//
// Every process leads a session and a group of its own. Its stdin is /dev/null, and its output
// goes through pipes to files, or to the owner's output; a process in the foreground has the
// owner's stdin and terminal. Each gets a parent-death signal, a cookie in its environment and,
// if the kernel permits it, a cgroup.
//
// A supervisor that is root starts a process as the user of its command: the child changes
// its user before it enters the directory and sets the parent-death signal, and the files are
// opened as that user. No helper program is involved.
//
// When the leader ends by itself, the processes that it leaves running are stopped like its
// task ([Command.Stop]): the group, and orphans in other sessions, which become children of the
// supervisor because it is a subreaper, get the signal, and they and the cgroup SIGKILL when
// the grace is over. They may be saving something, or about to end. The leader is reaped after
// all of these are gone, and only then has the process ended, and the next one may be started.
// See [reaper] for how that works without a scan of /proc.
//
// To stop a process means: the signal to the leader, SIGCONT to the group so that a stopped
// program can act on it, and SIGKILL when the grace is over. The rest of the group gets the signal
// when the leader has ended, or in the last tenth of the grace: until then the leader may need its
// helpers to save its work ([Command.StopGroup] asks all at once). A program outside the group,
// such as a daemon, gets the signal when the leader has ended. The rest of the grace is for all of
// these. A later request to stop the process shortens the grace of the processes that it
// left running, but changes nothing in its exit. Only the kernel can keep a process alive after
// SIGKILL: after a while such a process is reported as unkillable and no longer waited for. Its task
// is not started again while it is there.
//
// The end of a process is the time at which its leader was seen dead, by one clock that counts
// suspension too. Ends that were seen together have the same time, because the kernel does not
// report which of them came first.
//
// # Output
//
// A stream that goes to a file is a pipe to the supervisor. A program may therefore open
// /dev/stderr again in any mode: a pipe cannot be truncated. See [output].
//
//   - The rest of a process's pipes is copied before its exit is known, after everything that
//     belongs to the process is gone.
//   - If the supervisor is stopped, writers wait once their pipe is full, and nothing is lost
//     or written twice. If it is killed, its processes end with it, and the content of their
//     pipes, from the last milliseconds, is lost.
//   - A file that is truncated grows from its beginning. One that is renamed is still written to.
//   - While the disk is full, writers wait for up to five seconds. Output that cannot be
//     written even then is counted: a note follows in the file as soon as there is room, and
//     the exit has the number. The program continues. A side that shows the output may take what
//     is not written (Unkept); its programs wait for that.
//   - An output that goes to the owner is copied there, whole lines at a time if that is
//     possible, and its last 64 KiB become its file when the process has ended. Instead of a
//     terminal the process gets a pseudoterminal. Only a process in the foreground has the
//     terminal itself; then the file says that it has no output.
//   - If the disk hangs, or the owner's reader pauses, writers wait, and exits are reported after
//     KillBound without the rest.
//
// An output costs four open files per process and a few kilobytes of the kernel; a pipe holds up
// to 64 KiB, or 256 KiB once it was nearly full. A run has a goroutine for each processor, four at
// most, with a buffer of 260 KiB each, and no thread while nothing is written.
//
// # What survives what
//
//   - The side dies: nothing happens to the processes. Ends that no side has read yet stay in
//     the journal; reading does not consume them.
//   - The side dies, hangs, or hears nothing from its server: a process with a [Contact] is
//     stopped when the contact has not been renewed in time.
//   - The program is upgraded ([Upgrade]): the side is ended and started from the program on
//     disk, if that understands the protocol, the options and the plans of the runs; processes
//     do not notice. The supervisor continues, also with new processes. If the program is of
//     another version, the supervisor ends when all runs are released, and a service manager or
//     a user starts the new one.
//   - The supervisor dies: parent-death signals kill the leaders, and the side kills the rest
//     (SweepAfterLoss) and exits. The next OpenState sweeps once more and journals processes
//     without an end as Lost. The kernel frees the ports.
//   - Both die: the guard sweeps. It is this program again, under another name
//     ("task-guard"), which a supervisor has as soon as a process runs, and starts again if it
//     ends.
//   - All three die: the next OpenState sweeps.
//   - The owner dies: the lifeline closes, everything is stopped with a short grace, and the
//     side sends its last reports. The owner can request the same with the signals and graces
//     of its choice ([StopAll]), or have the stops of runs send the signal that it received
//     itself.
//   - The machine dies: processes of another boot without an end are Lost.
//   - The disk fills up: starts are refused with ErrJournal; running processes continue, and
//     ends are kept in memory until they can be written.
//   - A task is restarted for weeks: the first process of each launch is kept and the last
//     hundred, and likewise the first generation and the last hundred. The journal has all of
//     them, in less than 2 KB each, until the run ends.
//   - A journal is old: it stays until its run is released here. Only the server knows
//     whether a run is open.
//   - A journal is damaged: it is set aside, and records that can no longer be read from it
//     count as lost. A torn last line is not damage.
//
// # Who may command
//
// Requests carry a [Fence], and a fence older than the newest seen for its task is refused.
// Fences are ordered by launch, then by execution of the run's workflow, then by attempt.
// Process N+1 of a task is started when N has ended and was granted a successor, or under a
// later launch (`clusterrun start`). A generation is over once a process of a later one was started.
//
// # Bounds
//
// The process's cgroup limits memory, processor time and processes from the fork on. Limits of
// setrlimit(2) hold from the first instruction of the program, which is stopped there until
// they are set. The supervisor lowers its own OOM score if it may, so that the OOM killer takes
// it last; its children do not inherit the score.
//
// A run with a quota of output keeps exactly that much if it drops the rest. A process that is
// ended for it may exceed the quota by its output until it is dead.
//
// # Limits
//
// Each leased port is an open file of the supervisor, and so is each task's socket of the
// side and each output: the hard limit (ulimit -n) bounds them. Tasks get the owner's soft limit.
//
// Without cgroups, a program that leaves its session and clears its environment cannot be
// distinguished from another task's. It is killed once every task that could have started it
// has ended; if the supervisor itself is killed, it is not found. Programs that change their
// user may refuse our signals. If a task starts clusterrun, only root can read that program's
// environment: the sweep after the supervisor was killed finds its processes, and it ends with
// its launcher.
//
// MaxRSS is the kernel's number. It includes the memory of the supervisor at the fork: small
// programs look a little larger than they are.
//
// Under systemd, use KillMode=mixed: the default sends SIGTERM to the tasks behind the
// supervisor's back, and they would count as having ended by themselves.
package supervisor
