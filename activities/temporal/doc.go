// Package temporal has the adapters to the Temporal server's API: a host and the services
// of its tasks ask for what they need in words of their own, and import no client.
//
//	Server    heartbeats, and the runs: described, asked, cancelled
//	Barriers  the rounds of barriers, each a workflow
//	Queues    the queues of closures, each a workflow
//
// Barriers and Queues have activities that ask the server and touch no host: BarrierCheck
// and ClosuresCheck, by which such a workflow hears of the end of its run, and EndClosures,
// by which a run ends its queue. Closures has those by which a queue has closures called on a
// host; they are the way to its brokers.
//
// All of them can be used before there is a connection ([Server.Connect]).
package temporal
