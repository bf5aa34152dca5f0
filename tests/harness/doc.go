// Package harness lets tests use clusterrun as a user does: real binaries, a real Temporal
// server, real processes, and an environment with only PATH and HOME.
package harness
