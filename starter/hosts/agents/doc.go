// Package agents has the agents of several hosts meet, each of which was started there by the
// same command line, and be one run: as torchrun's do.
//
// # The endpoint
//
// One of them is the head: it listens at the endpoint that all of them know, has the run, and
// with it a Temporal server. The others join, and are host workers of that run. All
// connections are theirs, and go to the endpoint:
//
//	clusterrun-agent   one for each agent, for as long as it takes part: a request and its
//	                   answer, a line of JSON each; then nothing. Its end is that of one of
//	                   the two sides.
//	h2                 one for each connection of a host worker to the Temporal server, which
//	                   the head passes on. What the server itself wants to see, such as a
//	                   certificate, the head shows it.
//
// # The secret
//
// Whoever may use the server can run commands as its user, so both sides of each connection
// prove that they know the secret of the agents ([Secret]), and neither tells it: both have the
// certificate of a key that is made of the secret alone ([Key]), take no other, and TLS 1.3
// has them sign with it what is new in each connection. A guess at a secret can be tried
// without them by whoever has connected once, and so it has to be long and random.
//
// # Ends
//
// The run ends with its head. The end of the head's program ends its connections at once; the
// others stop their processes then ([Membership.Lost]). A connection that breaks is made again.
//
// # Why not the link of package remotehosts
//
// There the command is the only way of a host to the server, and both end together. An agent is a
// command of its own, which shows the output of its tasks and ends with the exit code of the run.
// When it is killed, the side of its host worker goes on to report how its processes have ended:
// over a connection to the server that is not the command's. And a connection that breaks is not
// the end.
package agents
