// Package mpirun reads the words of mpirun, mpiexec and srun among the flags of
// `clusterrun run`, and says which flags of ours do the same. It starts nothing.
//
// Each word has its meaning here, or is not needed and accepted with a word, or is refused with
// what to do instead: [Reference] lists them.
package mpirun
