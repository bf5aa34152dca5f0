// Package measure measures what users wait for when they start processes: with clusterrun, with
// a bare shell as the floor, and with other launchers. A [Launcher] says how each of them is
// called; a [Place] starts them, with small programs that report through named pipes, so that
// no clock but ours is read.
//
//	launchers.go          how clusterrun and a shell are called
//	place.go, copies.go   a directory to measure in; copies of a program that report there
//	processes.go          launch, restart, end, memory, what a killed launcher leaves
//	barrier.go, closures.go, programs.go
//	                      the same for barriers and closures, and the programs that take part
//	figures.go            the figures of `make bench`
//
// Single figures depend on the machine and on what else it does. So whoever compares measures
// both sides in turns, and looks at ratios.
//
// The copies of a program read a pipe of which only the Place has the writing end: they end
// with it, however that ends.
package measure
