// Package specs makes run specs of files and flags: of YAML or a command line (source.go,
// specflags.go, taskflag.go), of lists of hosts (hosts.go, nnodes.go), and of the
// shell's environment (shellenv.go). It packs the directories that a run ships, and signs specs.
package specs
