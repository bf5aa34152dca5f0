// Package hostservice serves the files of runs from the host that stores them, and reads them from
// other hosts.
//
// A [Server] speaks HTTP over TLS, and HTTP/2 with clients that support it:
//
//	GET  /v1/runs/{run}                      which processes have files: a [Listing]
//	POST /v1/runs/{run}/output               the output of the run's processes here that
//	                                         a [Query] selects: records, see below
//	GET  /v1/runs/{run}/tasks/{rank}/attempts/{n}/{file}
//	                                         one file, as it is now: stdout, stderr, error, result,
//	                                         start, metrics, or the name of a stack file
//	POST /v1/runs/{run}/lease                a [Question] of another host of the run, with
//	                                         the answer of package lease
//	GET  /v1/archives/{digest}?offset=BYTES
//	                                         the directories that runs ship; see package shipped
//	PUT  /v1/archives/{digest}?run=WORKFLOW  keeps an archive for a run's hosts until the
//	                                         run has ended; the answer describes how to read it
//
// where run is the ID of the run's first execution.
//
// The end of an answer is always marked. An output ends with its last record, and a file with the
// trailer Clusterrun-End, which contains the file's size. A response without such a mark is
// incomplete.
//
// # Records
//
// An output is a sequence of records, each a line of JSON ([record]). A record with length n is
// followed by n bytes of one stream. The output comes from a [tasklog.Follower], which reads no
// faster than the client, so a client that does not read costs only one buffer. [Client.Follow] is
// the client side, and delivers [tasklog.Chunk] values like a follower of files. After its
// connection has broken, the client sends the offsets that it has reached, so that no bytes are
// lost or repeated.
//
// # Who may read
//
// The following applies to runs' files. Archives work the same way: a token allows its holder to
// read one archive, identified by its digest, or to store archives. Anyone who may query the fleet
// receives a token for storing archives from it.
//
// A request needs a token (Authorization: Bearer). The token names a run and the directory that
// contains the run's files. If the host worker runs as root, it also names the tasks' user, and the
// files are read as that user. The token is signed with a key in the state directory, so the host
// need not store it, and files can be read for as long as they exist even if the run was forgotten
// long ago. Anyone who may query a run's status receives the token from the run. Requests without a
// valid token always get the answer 404, whatever the reason.
//
// # Witnesses
//
// [Witnesses] asks a run's other hosts about the Temporal server for a host that cannot reach it,
// and answers such questions. Package lease defines the rules.
//
// A host answers by trying. A probe, which all questions share, checks whether the server answers
// this host. If so, the host forwards the question's heartbeat, and replies with the server's
// answer. Otherwise it reports no contact, unless it has promised the run to deny contact. It keeps
// its assurances in memory, by run and generation, and its promises in the run's plan. Questions
// require a separate token, which only the run's hosts receive.
//
// The certificate is created once and kept in the state directory. Clients identify it by its
// fingerprint, which they also receive from the run. So it need not be signed by an authority, and
// its names and dates do not matter.
package hostservice
