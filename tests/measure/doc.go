// Package measure measures what users wait for when they start processes: with clusterrun, with a
// bare shell as the floor, and with other launchers. A [Launcher] contains one program's command
// lines. A [Place] runs them with small programs that report through named pipes, so that only this
// process's clock is used.
//
//	launchers.go          command lines of clusterrun and a shell
//	place.go, copies.go   a directory to measure in; copies of a program that report there
//	processes.go          launch, restart, end, memory, what a killed launcher leaves
//	barrier.go, closures.go, programs.go
//	                      the same for barriers and closures, and the programs that take part
//
// Figures depend on the machine and its load. So comparisons alternate between both sides, and
// use ratios.
//
// The copies of a program read a pipe with its only write end in the Place. They exit with the
// Place, even if it is killed.
package measure
