// Package torchrun translates torchrun's command line, and the variables that torchrun reads, to
// the command line of `clusterrun run`. It starts nothing, and its caller describes the machine.
//
// It accepts the flags of PyTorch 1.9 to 2.14. Each one has an effect, is unneeded and ignored,
// or is refused with advice: [Reference] lists them.
package torchrun
