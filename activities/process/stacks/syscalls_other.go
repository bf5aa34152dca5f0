//go:build !amd64

package stacks

// There are no further calls on this architecture.
var onDescriptorHere, othersHere map[int]string
