// Package agents joins the agents of several hosts, which the same command line started on each
// of them, into one run, as torchrun does.
//
// # The endpoint
//
// One of the agents is the head. It listens at the endpoint, which all agents know, and owns
// the run and its Temporal server. The others join it, and serve the run as host workers. They
// make all connections, to the endpoint:
//
//	clusterrun-agent   one for each agent, for as long as it takes part: a request and its
//	                   answer, a line of JSON each; then nothing. It ends when one of the
//	                   two sides ends.
//	h2                 one for each connection of a host worker to the Temporal server, which
//	                   the head passes on. The head presents what the server asks for, such
//	                   as a certificate.
//
// # The secret
//
// A client of the server can run commands as its user. So both sides of each connection prove
// that they know the secret of the agents ([Secret]) without sending it: both have the
// certificate of a key that is derived from the secret ([Key]), accept no other, and TLS 1.3
// makes them sign fresh data of each connection with that key. A client that has connected once
// can test guesses at the secret offline, so the secret must be long and random.
//
// # Ends
//
// The run ends with its head. When the head's program ends, so do its connections, and the
// other agents stop their processes ([Membership.Lost]). A connection that breaks is made
// again.
//
// # Why not the link of package remotehosts
//
// There the command is the only way of a host to the server, and both end together. An agent is
// a command of its own, which shows the output of its tasks and ends with the exit code of the
// run. When it is killed, its host worker still reports how its processes have ended, over its
// own connection to the server. And a broken connection does not end the run.
package agents
