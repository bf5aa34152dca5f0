// Package task implements `clusterrun task`, the commands for programs within a run: barriers,
// results, progress, stopping together, and MPI.
package task
