// Package temporal has the adapters to the Temporal server's API: a host and the services
// of its tasks ask for what they need in words of their own, and import no client.
//
//	Server    heartbeats, and the runs: described, asked, cancelled
//	Barriers  the rounds of barriers, each a workflow
//	Queues    the queues of closures, each a workflow
//
// Barriers and Queues have an activity each, BarrierCheck and ClosuresCheck, by which such
// a workflow hears of the end of its run: they ask the server and touch no host.
//
// All of them can be used before there is a connection ([Server.Connect]).
package temporal
