// Package tests holds what is tested from outside or across packages. The arrows between
// packages are tested here, whole runs in e2e, faults in drill, and figures in bench; harness
// has what these share. peers knows other launchers, which compare runs beside clusterrun.
// recording makes what the README shows of a terminal.
package tests
