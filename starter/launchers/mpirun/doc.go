// Package mpirun reads the flags of mpirun, mpiexec and srun among the flags of `clusterrun
// run`, and translates them to the flags of run. It starts nothing.
//
// Each flag has its meaning here, or is accepted because it is not needed, or is refused with
// advice: [Reference] lists them.
package mpirun
