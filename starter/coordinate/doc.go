// Package coordinate lets programs of any language schedule closures: requests and answers are
// lines of JSON, on stdin and stdout of `clusterrun coordinate RUN`, or on a descriptor that
// `clusterrun run` was given. Operations, messages and answers are those of the task API; see
// [wire.Operations] and openapi.yaml.
//
//	← {"event":"open","run":"iris","answer":{"at":"…","room":1000}}
//	→ {"id":1,"op":"schedule","message":{"client":"c1","batch":1,"closures":[{"function":"step","args":[1]}]}}
//	← {"id":1,"answer":{"first":17,"room":999}}
//	→ {"id":2,"op":"outcomes","message":{"client":"c1","after":"…","wait":20}}
//	← {"id":2,"answer":{"at":"…","outcomes":[{"id":17,"value":0.3,"task":"worker-0"}]}}
//
// A request has an ID that its answer repeats; answers come in any order. The operations
// schedule, join and done are done one after the other, in the order of their lines, and the
// others at once. Lines without an ID are events: "open" comes first and has the answer to the operation open, and
// "over" says that the run has ended, and how.
//
// At the end of the input the service ends, once the closures of all requests are in the queue;
// other requests get no answer. If nothing gets into the queue for a minute, that is an error.
// What is in the queue goes on.
package coordinate
