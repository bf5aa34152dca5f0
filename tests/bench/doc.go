// Package bench is the one program that measures what users wait for: with clusterrun, with a bare
// shell or a byte to a socket as the floor, and with other launchers. Its benchmarks are its
// commands:
//
//	Figures       what users wait for most, next to a floor (make bench)
//	Peers         the same work with other launchers, for a table (make compare)
//	ManyHosts, ManyJoin, ManyRequests
//	              runs, queues and requests of a thousand simulated hosts
//	Sweep, Hangs  many short trials, and hangs where a rank is guilty
//
// A [Launcher] contains one program's command lines. A [Place] runs them with small programs that
// report through named pipes, so that only this process's clock is used. The programs read a pipe
// with its only write end in the Place. They exit with the Place if it is killed.
//
// Figures depend on the machine and its load. So comparisons alternate between both sides, and use
// ratios.
package bench
