// Package command is the clusterrun command line. It has the root of the commands, and help,
// version and completion for shells. Each group of commands has a package, in which a command
// is a function that returns a [cobra.Command]:
//
//	run     run, torchrun, rerun: on this machine or by ssh
//	submit  submit, schedule, validate
//	look    list, status, top, show, diff, stacks, export
//	logs    logs
//	act     stop, restart, start, signal, exec
//	disk    du, prune, rm, keep
//	call    functions in the tasks of a run
//	worker  worker
//	server  dev, ui, server
//	web     the pages that dev and ui serve
//	hosts   host, policy
//	doctor  doctor
//	task    for programs within a run
//
// They use these packages:
//
//	specs   from files and flags to a run spec
//	report  the progress of a run and how it ended, and the command wait
//	cli     streams, global flags, errors, exit codes, the server, the choice of a run
//
// To add a command, write a function in the package of its group and name it in root.go.
package command
