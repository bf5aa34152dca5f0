// Package files reads what a run's processes leave behind: their output, results, errors, starts,
// usage and stacks.
//
// A run reports each process's directory and host. A directory on this machine, or on a disk shared
// with it, is read directly. Any other directory is read from its host's service. [Files] decides
// between the two for all readers. An [Output] follows a run's output from all these places, but
// each process's output from only one.
package files
