// Package specs makes run specs of files and flags: of YAML or a command line (source.go,
// specflags.go, taskflag.go), of lists of hosts (hosts.go, nnodes.go), of the shell's
// environment (shellenv.go), and of the words of mpirun and srun (words.go, programs.go). It
// packs the directories that a run ships, and signs specs.
package specs
