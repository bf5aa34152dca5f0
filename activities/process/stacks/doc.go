// Package stacks records what task processes are doing, to show why they do not make progress. It
// writes one text file per task with the kernel's information about each thread of each process:
// state, CPU time, system call, and the kernel function in which it waits. This neither stops
// processes nor requires a debugger.
//
// Only the program itself can report what a thread does in the program's own code. A program in any
// language can be asked if it
//
//   - opens the file $CLUSTERRUN_STACK_FILE.<its process ID> for appending and keeps it open, or a
//     file in memory (memfd_create) called clusterrun-stacks.<its process ID>, and
//   - handles the signal $CLUSTERRUN_STACK_SIGNAL ([Signal]) by appending text to that file.
//
// Python programs work unchanged. PYTHONPATH starts with our directory, in which sitecustomize
// registers a faulthandler and then executes the program's own sitecustomize. The faulthandler
// works even while native code blocks the interpreter. A forked child gets its own file. This does
// not work for interpreters that are started with -S, -E or -I or without their environment, for
// interpreters in a container that cannot see the directory, or for programs that close all
// descriptors or use the signal for something else; see activities/tasks/python. In bash:
//
//	exec 3>>"$CLUSTERRUN_STACK_FILE.$$"
//	trap 'echo "in $step, called from ${FUNCNAME[*]}" >&3' "$CLUSTERRUN_STACK_SIGNAL"
//
// Both conditions are checked before the signal is sent, because an unexpected signal kills most
// programs, and some runtimes catch every signal for their own purposes. The only gap is the
// microseconds between the check and the signal, during which a process may execute another
// program.
//
// # Native stacks
//
// If eu-stack, which is part of elfutils, is installed on the host, it unwinds processes that do
// not answer: a few per task, a few at a time. For a process with very many threads it unwinds only
// the main thread. eu-stack stops a thread for the milliseconds that unwinding takes. It is killed
// when its time expires, and the process then continues. It needs permission to trace the process:
// root, or the same user if Yama does not restrict ptrace. Programs in Go, Java and node are also
// unwound, because their runtimes can print stacks only to the program's own output, or exit.
//
// # The worker of a task
//
// [Result.Stack] is the main thread's stack in one process of the task: the leader or, if that is a
// shell waiting for its only child, the child. If that process is waiting for a child that runs the
// program's code, such as a data loader's worker, the child's stack follows. Package stacktree
// compares it with other ranks' stacks.
//
// # What belongs to a task
//
// A task owns its leader's session, all descendants, and processes that left both but keep the
// leader's cgroup or cookie, which the supervisor assigned.
//
// # Bounds
//
// Everything is limited: a task's processes, a process's threads, an answer's bytes, and above all
// time. Reading some files in /proc waits for locks of the process that they describe, and hangs
// with it. So a goroutine that can be abandoned reads each process, and reads that may hang come
// last. The file names the missing parts.
//
// Kernel stacks require root. If Yama restricts ptrace, system calls are also missing.
package stacks
