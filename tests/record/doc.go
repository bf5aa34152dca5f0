// Program record writes histories of the workflows for package workflows to replay. `make record`
// runs it for a version that is to be released.
//
// It runs the commands of scenarios.sh on two development servers, one of which has workflows continue
// as new all the time, and writes the history of each execution that has closed, without the parts
// that replaying does not read.
package main
