// Package agents joins the agents of several hosts, which the same command line started on each
// of them, into one run, like torchrun.
//
// # The endpoint
//
// One of the agents is the head. It listens at the endpoint, which all agents know, and owns
// the run and its Temporal server. The other agents join it, and serve the run as host workers.
// They make all connections, to the endpoint:
//
//	clusterrun-agent   one for each agent, for as long as it belongs to the run. It carries a
//	                   request and its answer, each a line of JSON, and then nothing. It
//	                   closes when either side ends it.
//	h2                 one for each connection of a host worker to the Temporal server, which
//	                   the head passes on. The head presents what the server asks for, such
//	                   as a certificate.
//
// # The secret
//
// A client of the server can run commands as its user. So both sides of each connection prove
// that they know the agents' secret ([Secret]) without sending it: both hold the certificate of
// a key derived from the secret ([Key]) and accept no other, and TLS 1.3 makes them sign fresh
// data with that key on each connection. A client that has connected once can test guesses at
// the secret offline, so the secret must be long and random.
//
// # Shutdown
//
// The run ends when its head exits: the head's connections then close, and the other agents stop
// their processes ([Membership.Lost]). Broken connections are restored.
//
// # Why not the link of package remotehosts
//
// In package remotehosts, the command is a host's only connection to the server, and both stop
// together. An agent is a separate command, which shows its tasks' output and exits with the
// run's exit code. When it is killed, its host worker still reports its processes' exits, over
// its own connection to the server. A broken connection does not end the run.
package agents
