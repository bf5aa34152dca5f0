//go:build !amd64

package stacks

// This architecture has no calls of its own.
var onDescriptorHere, othersHere map[int]string
