// Program record writes workflow histories for package workflows to replay. `make record` runs it
// for each release.
//
// It runs the commands in scenarios.sh on two development servers, one of which makes workflows
// continue as new all the time, and writes the history of each closed execution, without the
// parts that replay does not read.
package main
