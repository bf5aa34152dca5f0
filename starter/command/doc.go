// Package command implements the clusterrun command line: the root command, help, version and
// shell completion. Each group of commands is a package, with one function per command that
// returns a [cobra.Command]:
//
//	run     start runs on this machine or by ssh
//	submit  start runs in the background, on a queue
//	look    show runs
//	logs    show the output of runs
//	act     change runs
//	disk    what ended runs left on disk
//	worker  host workers
//	server  the server, and everything on one machine
//	web     the pages that dev and ui serve
//	hosts   hosts of a queue, and what a policy allows
//	doctor  what is wrong here
//	task    for programs within a run
//
// They use these packages:
//
//	specs   from files and flags to a run spec
//	report  the progress of a run and how it ended, and the command wait
//	cli     streams, global flags, errors, exit codes, the server, the choice of a run
//
// root.go lists all commands. To add one, write a function in its group's package and list it
// there.
package command
