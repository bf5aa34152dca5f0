// Package specs builds run specs from files and flags: from YAML or a command line (source.go,
// specflags.go, taskflag.go), from lists of hosts (hosts.go, nnodes.go), and from the shell's
// environment (shellenv.go). It packs the directories that a run ships, and signs specs.
package specs
