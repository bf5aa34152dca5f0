// Package run implements the commands run, torchrun and rerun. They take a run from its spec to
// the exit code.
//
// localrun.go brings up a run on this machine and waits for it to finish. Its parts are the
// other hosts (runhosts.go over ssh, agents.go over torchrun's rendezvous), the output
// (output.go), stopping (stopping.go, passsignals.go) and the report (conclude.go). remoterun.go
// waits for a run on a queue's hosts, and remotehost.go is the remote end of the ssh connection.
package run
