// Package tests holds what is tested from outside or across packages: the
// arrows between packages here, whole runs in e2e, faults in drill, figures in
// bench, and what those share in harness. peers has other launchers, with which compare compares. What the README shows of a terminal is made in
// recording.
package tests
