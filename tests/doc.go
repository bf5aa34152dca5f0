// Package tests holds tests from outside and across packages. The imports between packages are
// tested here, whole runs in e2e, faults in drill, and figures in bench. Package harness has
// what these share. Package peers knows other launchers, and compare compares clusterrun with
// them.
package tests
