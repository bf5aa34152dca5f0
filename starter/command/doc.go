// Package command is the clusterrun command line. It has the root of the commands, and help,
// version and completion for shells. Each group of commands has a package, in which a command
// is a function that returns a [cobra.Command]:
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
// root.go has the list of all commands. To add one, write a function in the package of its group
// and name it there.
package command
