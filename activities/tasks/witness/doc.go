// Package witness asks a run's other hosts about the Temporal server for a host that cannot reach
// it, and answers such questions. Package lease defines the rules.
//
// A host answers by trying. A probe, which all questions share, finds out whether the server
// answers this host. If it does, the host forwards the question's heartbeat, and replies with the
// server's answer. Otherwise it reports no contact, unless it has promised the run to deny.
//
// Its assurances are in memory, by run and generation, and its promises in the run's plan.
package witness
