// Package stacks writes down what the processes of tasks are doing, for somebody
// who wants to know why they do not go on. One text file per task says, of each
// of its processes and of each of their threads, what the kernel knows: state,
// CPU time, system call, where in the kernel it waits. Nothing is stopped for it,
// and no debugger is needed.
//
// What a thread does in its own code only the program can say. One that wants to
// be asked, in any language,
//
//   - opens the file $CLUSTERRUN_STACK_FILE.<its process ID> for appending and
//     keeps it open, and
//   - handles the signal $CLUSTERRUN_STACK_SIGNAL ([Signal]) by appending text to
//     that file.
//
// For Python it is done by importing the module clusterrun (package taskapi),
// whose handler works while the interpreter is stuck in native code. In bash:
//
//	exec 3>>"$CLUSTERRUN_STACK_FILE.$$"
//	trap 'echo "in $step, called from ${FUNCNAME[*]}" >&3' "$CLUSTERRUN_STACK_SIGNAL"
//
// Both are looked for before the signal is sent, because most programs die of a
// signal they do not expect, and some runtimes catch every one for purposes of
// their own. Between the look and the signal a process may still execute another
// program; that takes microseconds and is the only gap.
//
// # What belongs to a task
//
// The session of its leader; what descends from that; and what left both but has
// the leader's cgroup or its cookie, as the supervisor hands them out.
//
// # Bounds
//
// Everything has one: processes of a task, threads of a process, bytes of an
// answer, and above all time. Some files in /proc wait for locks of the process
// they tell of, and whoever reads them hangs with it; so a process is read
// by a goroutine that can be left behind, in an order in which what may hang
// comes last. What is missing in a file is said there.
//
// Without the rights of root there is no kernel stack, and where Yama restricts
// ptrace no system call either.
package stacks
