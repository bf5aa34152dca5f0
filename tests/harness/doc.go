// Package harness lets tests use clusterrun like users: real binaries, a real Temporal server,
// real processes, and an environment with only PATH and HOME.
package harness
