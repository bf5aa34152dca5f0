// Package torchrun reads torchrun's command line and the variables that torchrun reads, and
// translates them to the command line of `clusterrun run`. It starts nothing, and its caller
// describes the machine.
//
// It knows the flags of PyTorch 1.9 to 2.14. Each has its meaning here, or is accepted because
// it is not needed, or is refused with advice: [Reference] lists them.
package torchrun
