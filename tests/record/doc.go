// Program record writes workflow histories for package workflows to replay. `make record` runs it
// for each release.
//
// It runs the commands in scenarios.sh on two development servers, one of them making workflows
// continue as new all the time, and writes each closed execution's history, without the parts that
// replay does not read.
package main
