// Package run implements the commands run, torchrun and rerun. They take a run from its spec to
// the exit code.
//
// localrun.go brings up a run on this machine and waits for its end. Its parts are the other
// hosts (runhosts.go by ssh, agents.go by torchrun's rendezvous), the output (output.go), the
// stop (stopping.go, passsignals.go) and the report (conclude.go). remoterun.go waits for a run
// on the hosts of a queue, and remotehost.go is the remote end of the ssh connection.
package run
