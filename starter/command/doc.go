// Package command is the clusterrun command line: one file per subcommand, and
// beside those
//
//	main.go      from arguments to exit code
//	errors.go    mistakes of the user, failures of the machinery, exit codes
//	server.go    which Temporal server: named, or our own embedded one
//	specfile.go, specflags.go, taskflag.go, hosts.go
//	             from files and flags to a run spec
//	words.go, programs.go
//	             other launchers' words among the flags, and several programs
//	torchrun.go  the same from the command line of torchrun
//	localrun.go  a run on this machine: private host worker, output, verdict;
//	             hostworker.go, interrupt.go, stopping.go, conclude.go, disk.go,
//	             abandoned.go and report.go are its parts
//	runhosts.go, remotehost.go
//	             a run on other hosts by ssh: the command's side, and the host's
//	onrun.go
//	             the run that is meant
//	doctorserver.go, doctorhost.go
//	             the facts that doctor judges
//	voice.go, outlet.go
//	             our messages, and our outputs with the first error of each
//
// Data goes to stdout, everything else to stderr. Whoever reads them may stop to, and
// what stops a run must not wait for him: a command that catches signals writes in
// goroutines that it can leave behind.
package command
