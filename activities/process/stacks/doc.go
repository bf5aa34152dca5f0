// Package stacks records what the processes of tasks are doing, to show why they make no
// progress. One text file per task has, for each of its processes and each of their threads,
// the kernel's account: state, CPU time, system call, and the function in the kernel in which
// it waits. No process is stopped for this, and no debugger is needed.
//
// Only the program itself can report what a thread does in its own code. A program in any
// language can be asked if it
//
//   - opens the file $CLUSTERRUN_STACK_FILE.<its process ID> for appending and keeps it open,
//     or has a file in memory (memfd_create) called clusterrun-stacks.<its process ID>, and
//   - handles the signal $CLUSTERRUN_STACK_SIGNAL ([Signal]) by appending text to that file.
//
// Python programs need no change: PYTHONPATH begins with our directory, whose sitecustomize
// registers a faulthandler, which works while the interpreter is stuck in native code, and then
// executes the program's own sitecustomize. A forked child has a file of its own. This does not
// reach interpreters that are started with -S, -E or -I or without their environment, nor
// interpreters in a container that cannot see the directory, nor programs that have closed all
// their descriptors or use the signal for something else; see activities/tasks/python. In bash:
//
//	exec 3>>"$CLUSTERRUN_STACK_FILE.$$"
//	trap 'echo "in $step, called from ${FUNCNAME[*]}" >&3' "$CLUSTERRUN_STACK_SIGNAL"
//
// Both conditions are checked before the signal is sent, because most programs die of an
// unexpected signal, and some runtimes catch every signal for their own purposes. Between the
// check and the signal a process may still execute another program; that takes microseconds
// and is the only gap.
//
// # Native stacks
//
// Processes that do not answer are unwound by eu-stack of elfutils, if the host has it: a few
// of each task, a few at a time. Of a process with very many threads only the main thread is
// unwound. eu-stack stops a thread while it unwinds it, which takes milliseconds, and is killed
// when its time is over; the process then continues. It needs the right to trace the process:
// root, or the same user if Yama does not restrict ptrace. Programs in Go, Java and node are
// unwound the same way: their runtimes can print stacks only to the program's own output, or
// end it.
//
// # The worker of a task
//
// [Result.Stack] is the stack of the main thread of one process of the task: the leader or, if
// that is a shell that waits for its only child, the child. If that process waits for a child
// which is in code of the program, such as a worker of a data loader, the stack of the child
// follows. Package stacktree compares it with
// the stacks of other ranks.
//
// # What belongs to a task
//
// The session of its leader; all its descendants; and processes that left both but have
// the leader's cgroup or cookie, which the supervisor assigned.
//
// # Bounds
//
// Everything is bounded: the processes of a task, the threads of a process, the bytes of an
// answer, and above all time. Some files in /proc wait for locks of the process that they
// describe, and a reader hangs with it. So each process is read by a goroutine that can be
// abandoned, and the reads that may hang come last. The file names the parts that are missing.
//
// Without root there is no kernel stack, and if Yama restricts ptrace there is no system call
// either.
package stacks
