// Package run is `clusterrun run`, `torchrun` and `rerun`: from a spec to the exit code.
//
// localrun.go brings a run up on this machine and waits for its end; its parts are the other
// hosts (runhosts.go by ssh, agents.go by torchrun's rendezvous), the output (output.go), the
// stop (stopping.go, passsignals.go) and the report (conclude.go). remoterun.go waits for a
// run on the hosts of a queue, and remotehost.go is the end of the ssh connection.
package run
