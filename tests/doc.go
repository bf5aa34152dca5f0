// Package tests contains tests from outside and across packages. It tests the imports between
// packages; e2e tests whole runs, drill tests faults, and bench measures figures. Package harness
// is their shared code.
package tests
