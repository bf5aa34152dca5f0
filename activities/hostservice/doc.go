// Package hostservice serves the files of runs from the host that has them, and reads them
// elsewhere.
//
// A [Server] speaks HTTP over TLS, HTTP/2 where the client can:
//
//	GET  /v1/runs/{run}                      which processes have files: a [Listing]
//	POST /v1/runs/{run}/output               the output of the run's processes here, as
//	                                         a [Query] wants it: records, see below
//	GET  /v1/runs/{run}/tasks/{rank}/attempts/{n}/{file}?offset=BYTES&follow=true
//	                                         one file: stdout, stderr, error, result or start
//	GET  /v1/archives/{digest}?offset=BYTES
//	                                         what runs ship; see package shipped
//	PUT  /v1/archives/{digest}?run=WORKFLOW  keeps an archive for the hosts of a run until
//	                                         that has ended; answers how it is read
//
// where run is the ID of the run's first execution.
//
// Files are the truth, and the offset in them is the cursor: what a client has read it
// does not ask for again, so that a connection that is lost neither loses a byte nor brings
// one twice. The end is always said: of an output by its last record, of a file by the
// trailer Clusterrun-End with the offset that was reached. What ends without it was cut
// off. With follow the end comes when the run has given the host back; without it, when
// all is sent that was there.
//
// # Records
//
// An output is a sequence of records, each a line of JSON ([record]). One with a length is
// followed by so many bytes of one stream. Behind it is a [tasklog.Follower], which reads
// no faster than the client takes: a client that does not read costs one buffer, whatever
// the tasks write. [Client.Follow] is the other end, and hands on [tasklog.Chunk] like a
// follower of files.
//
// # Who may read
//
// What follows is said of the files of runs. For archives it is the same: a token allows to
// read one, by its digest, or to store some, and the fleet tells the latter to whoever may
// ask it.
//
// A request needs a token (Authorization: Bearer). It names a run, the directory with its
// files and the user of its tasks, as whom root reads them, and is signed with a key of the
// state directory. So the host keeps nothing for
// it, and files can be read for as long as they are there, also when the run was forgotten
// long ago. The run tells its token to whoever may ask for its status. Whatever else comes
// gets the same answer, 404, wherever it is wrong.
//
// The certificate is made once and kept in the state directory. Clients know it by its
// fingerprint, which they have from the run as well, so no authority has to sign it; names
// and dates in it mean nothing.
package hostservice
