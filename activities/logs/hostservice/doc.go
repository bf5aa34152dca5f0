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
//	                                         start, usage, or the name of a stack file
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
// trailer Clusterrun-End, which contains its size. A response without that mark was cut off.
//
// # Records
//
// An output is a sequence of records, each a line of JSON ([record]). A record with length n is
// followed by n bytes of one stream. A [tasklog.Follower] feeds the output and reads no faster than
// the client, so a client that does not read costs only one buffer. [Client.Follow] is the client
// side, and delivers [tasklog.Chunk] values like a follower of files. When its connection has
// broken, the client sends the offsets that it has reached, so no byte is lost or repeated.
//
// # Who may read
//
// This section is about runs' files. Archives work the same way: a token allows its holder to read
// one archive, by its digest, or to store archives. The fleet gives a token for storing to anyone
// who may query the fleet.
//
// A request needs a token (Authorization: Bearer). The token names a run, the directory that
// contains the run's files and, if the host worker runs as root, the tasks' user, as whom the files
// are read. The token is signed with a key in the state directory, so the host need not store the
// token, and files can be read for as long as they exist, even if the run was forgotten long ago.
// The run gives its token to anyone who may query its status. All other requests get the same
// answer, 404, regardless of the reason.
//
// Questions about leases need a separate token, which only the run's hosts get.
//
// The certificate is made once and kept in the state directory. Clients identify the certificate by
// its fingerprint, which they also get from the run, so no authority has to sign the certificate,
// and its names and dates are meaningless.
package hostservice
