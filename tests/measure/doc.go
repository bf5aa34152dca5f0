// Package measure measures what users wait for when they start processes: with clusterrun, with
// a bare shell as the floor, and with other launchers. A [Launcher] holds the command lines of
// one of them. A [Place] starts them with small programs that report through named pipes, so
// that only the clock of this process is read.
//
//	launchers.go          command lines of clusterrun and a shell
//	place.go, copies.go   a directory to measure in; copies of a program that report there
//	processes.go          launch, restart, end, memory, what a killed launcher leaves
//	barrier.go, closures.go, programs.go
//	                      the same for barriers and closures, and the programs that take part
//
// Single figures depend on the machine and its load. So comparisons measure both sides in
// turns, and use ratios.
//
// The copies of a program read a pipe whose only writing end is in the Place. They end when the
// Place ends, even if it is killed.
package measure
