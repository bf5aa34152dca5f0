//go:build !amd64

package stacks

// There are no calls that only this architecture has.
var onDescriptorHere, othersHere map[int]string
