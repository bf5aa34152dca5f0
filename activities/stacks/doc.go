// Package stacks records what the processes of tasks are doing, for somebody who wants to
// know why they make no progress. One text file per task has, for each of its processes and
// each of their threads, what the kernel knows: state, CPU time, system call, and where in
// the kernel it waits. No process is stopped for this, and no debugger is needed.
//
// Only the program itself can say what a thread does in its own code. A program in any
// language that wants to be asked
//
//   - opens the file $CLUSTERRUN_STACK_FILE.<its process ID> for appending and keeps it open,
//     and
//   - handles the signal $CLUSTERRUN_STACK_SIGNAL ([Signal]) by appending text to that file.
//
// In Python, importing the module clusterrun (package taskapi) does both, and its handler
// works while the interpreter is stuck in native code. In bash:
//
//	exec 3>>"$CLUSTERRUN_STACK_FILE.$$"
//	trap 'echo "in $step, called from ${FUNCNAME[*]}" >&3' "$CLUSTERRUN_STACK_SIGNAL"
//
// Both conditions are checked before the signal is sent, because most programs die of an
// unexpected signal, and some runtimes catch every signal for their own purposes. Between the
// check and the signal a process may still execute another program; that takes microseconds
// and is the only gap.
//
// # What belongs to a task
//
// The session of its leader; all descendants of that; and processes that left both but have
// the leader's cgroup or cookie, which the supervisor assigned.
//
// # Bounds
//
// Everything is bounded: the processes of a task, the threads of a process, the bytes of an
// answer, and above all time. Some files in /proc wait for locks of the process that they
// describe, and a reader hangs with it. So each process is read by a goroutine that can be
// abandoned, and the reads that may hang come last. If something is missing, the file says
// so.
//
// Without root there is no kernel stack, and where Yama restricts ptrace there is no system
// call either.
package stacks
