// Package torchrun reads torchrun's command line, with the variables that torchrun reads, and
// says which command line of `clusterrun run` does the same. It starts nothing, and what it
// has to know of the machine is given to it.
//
// The flags are those of PyTorch 1.9 to 2.14. Each has its meaning here, or is not needed and
// accepted with a word, or is refused with what to do instead: [Reference] lists them.
package torchrun
