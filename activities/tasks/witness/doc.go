// Package witness asks the other hosts of a run about the Temporal server for a host that cannot
// reach it, and answers the questions of others. Package lease has the rules.
//
// An answer is found by trying. A probe, which all questions share, tells whether the server answers
// this host. If it does, the host passes the heartbeat in the question on, and the answer of the
// server is the answer. Otherwise the host has no contact, and says so unless it has promised the
// run to deny.
//
// Its words are in memory, by the run and the generation, and its promises in the plan of the run.
package witness
