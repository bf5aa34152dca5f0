//go:build !amd64

package stacks

// This architecture does not add calls.
var onDescriptorHere, othersHere map[int]string
