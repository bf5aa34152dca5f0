// Package supervisor implements the small process that is the parent of all task processes on a
// host. It does not use Temporal. It starts the side, which is the host worker's program that does,
// and restarts it when it dies. Processes outlive sides.
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
// [OpenState] locks a state directory and handles what an earlier supervisor left in it. [Run] is
// the supervisor. In the side, [ClientFromEnv] returns a [Client], which implements the [API]. An
// owner may run a side in another process, over a socket that it passes to the supervisor
// ([NewOwnersClient]). If that process dies, the supervisor starts its own side.
//
// # Parts
//
// The supervisor handles the side's requests and all exits. It works on a table of runs, whose lock
// also guards all processes. The following parts keep their own state:
//
//	launcher    opens files and forks; package fork, package output, cgroups
//	stopper     signals, graces, deadlines and kills
//	reaper      notices exits, attributes what leaders leave behind, and reaps
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
// A start is journalled, and the journal synced, before the fork. Therefore a start that is not in
// the journal did not happen, and no start happens twice. A volatile state is not synced, because
// its runs end with their owner and are not needed after a crash of the machine.
//
// Every process leads its own session and group. Its stdin is /dev/null, and its output goes
// through pipes to files or to the owner's output. A foreground process gets the owner's stdin and
// terminal. Each process gets a parent-death signal, a cookie in its environment and, if the kernel
// permits, a cgroup.
//
// A root supervisor starts a process as its command's user, without a helper program. The child
// changes its user before it enters the directory and sets the parent-death signal. Files are
// opened as that user.
//
// When the leader exits on its own, the processes that it leaves running are stopped with the
// task's signal and grace ([Command.Stop]), since they may be saving something or about to exit.
// The signal goes to the group and to orphans in other sessions, which the supervisor inherits as a
// subreaper. After the grace, they and everything in the cgroup are killed with SIGKILL. The leader
// is reaped only when all of them are gone. At that point the process has ended, and the next one
// may start. See [reaper] for how this works without scanning /proc.
//
// To stop a process, the supervisor signals the leader, sends SIGCONT to the group so that a
// stopped program can act on the signal, and sends SIGKILL after the grace. The rest of the group
// gets the signal when the leader exits, or in the last tenth of the grace, because the leader may
// need its helpers to save its work ([Command.StopGroup] signals all immediately). Programs outside
// the group, such as daemons, get the signal when the leader exits. All of them share the remaining
// grace. A later stop request shortens the grace of the processes left running, but does not change
// the exit. Only the kernel can keep a process alive after SIGKILL. After a while, the supervisor
// reports such a process as unkillable and stops waiting for it. It does not restart the task while
// that process exists.
//
// A process's end time is when its leader is found dead, by a clock that also runs during
// suspension. Leaders that are found dead together get the same time, because the kernel does not
// report which died first.
//
// # Output
//
// A stream that goes to a file is a pipe to the supervisor. A program may therefore reopen
// /dev/stderr in any mode, since a pipe cannot be truncated. See [output].
//
//   - The last output in a process's pipes is copied when everything that belongs to the process is
//     gone and before its exit is reported.
//   - If the supervisor is suspended, writers wait once their pipe is full, and nothing is lost or
//     written twice. If it is killed, its processes die too, and the last milliseconds of output,
//     still in their pipes, are lost.
//   - A truncated file grows from its start. A renamed file is still written to.
//   - While the disk is full, writers wait for up to five seconds, and then continue. Output that
//     still cannot be written is counted: the file gets a note as soon as there is space, and the
//     exit reports the number. A side that shows the output may fetch what could not be written
//     (Unkept), and programs wait until it does.
//   - Output for the owner is copied, in whole lines if possible, and its last 64 KiB are written
//     to its file when the process ends. Instead of a terminal the process gets a pseudoterminal.
//     Only a foreground process gets the terminal itself; its file then contains a note that there
//     is no output.
//   - If the disk hangs or the owner's reader pauses, writers wait, and exits are reported after
//     KillBound without the missing output.
//
// Output costs four open files per process and a few kilobytes of kernel memory. A pipe holds up to
// 64 KiB, or 256 KiB once it has been nearly full. A run uses one goroutine per processor, but at
// most four, each with a 260 KiB buffer. While nothing is written, it does not use any threads.
//
// # What survives what
//
//   - If the side dies, the processes are unaffected. Exits that no side has read yet stay in the
//     journal. Reading does not consume them.
//   - If the side dies, hangs, or loses contact with its server, a process with a [Contact] is
//     stopped unless the contact is renewed in time.
//   - If the program is upgraded ([Upgrade]), the program on disk becomes the side. If it exits
//     before it reports its version, the former program becomes the side again. Processes are not
//     affected. The supervisor continues, and may start new processes. If its version differs from
//     the side's, it exits when all runs are released, and a service manager or a user starts the
//     new version.
//   - If the supervisor dies, parent-death signals kill the leaders, and the side kills the rest
//     (SweepAfterLoss) and exits. The next OpenState repeats the sweep, and journals processes
//     without an exit as Lost. The kernel frees the ports.
//   - If both die, the guard sweeps. The guard is this program under another name ("task-guard").
//     The supervisor starts it with the first process, and restarts it if it exits.
//   - If all three die, the next OpenState sweeps.
//   - If the owner dies, the lifeline closes. The supervisor stops everything with a short grace,
//     and the side sends its last reports. The owner can request the same, with signals and graces
//     of its choice ([StopAll]), or have later stops send the signal that it received.
//   - If the machine dies, processes from an earlier boot without an exit are Lost.
//   - If the disk fills up, starts are refused with ErrJournal. Running processes continue, and
//     exits are kept in memory until they can be written.
//   - If a task is restarted for weeks, only the first process of each launch and the last hundred
//     processes are kept in memory, and likewise the first generation and the last hundred
//     generations. The journal contains all processes, in less than 2 KB each, until the run is
//     released.
//   - A journal is kept until its run is released, however old it is, because only the server knows
//     whether a run is open.
//   - A damaged journal is set aside, and unreadable records count as lost. A torn last line does
//     not count as damage.
//
// # Who may command
//
// Requests carry a [Fence], and a fence older than the newest seen for its task is refused. Fences
// are ordered by launch, then by execution of the run's workflow, then by attempt. Process N+1 of a
// task is started when N has ended and was granted a successor, or under a later launch
// (`clusterrun start`). A generation is over once a process of a later generation has been started.
//
// # Bounds
//
// From the fork on, the process's cgroup limits memory, processor time and the number of processes.
// Limits of setrlimit(2) apply from the program's first instruction, at which the program is
// stopped until they are set. If permitted, the supervisor lowers its own OOM score so that the
// kernel kills it last; its children do not inherit that score.
//
// If a run drops output that exceeds its quota, exactly the quota is kept. If instead a process is
// stopped, its output may exceed the quota by what it writes until it is dead.
//
// # Limits
//
// The supervisor needs an open file for each leased port, each output, and each task's socket in
// the side, and is subject to the hard limit (ulimit -n). Tasks get the owner's soft limit.
//
// Without cgroups, a program that leaves its session and clears its environment cannot be
// attributed to a task. It is killed once every task that could have started it has ended, but is
// not found if the supervisor itself is killed. Programs that change their user may be immune to
// our signals. If a task starts clusterrun, only root can read that program's environment. The
// sweep that runs after a supervisor has been killed finds the inner run's processes; the inner
// program itself exits when its launcher exits.
//
// MaxRSS is the kernel's number. It includes the supervisor's memory at the time of the fork, so
// small programs appear slightly larger than they are.
//
// Under systemd, use KillMode=mixed. By default, systemd sends SIGTERM directly to the tasks, which
// would then appear to exit on their own.
package supervisor
