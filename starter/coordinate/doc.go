// Package coordinate lets programs of any language schedule closures: requests and answers are
// lines of JSON, on stdin and stdout of `clusterrun call pipe RUN`, or on a descriptor that is
// given to `clusterrun run`. Operations, messages and answers are the same as in the task API;
// see [wire.Operations] and openapi.yaml.
//
//	← {"event":"open","run":"iris","answer":{"at":"…","room":1000}}
//	→ {"id":1,"op":"schedule","message":{"client":"c1","batch":1,"closures":[{"function":"step","args":[1]}]}}
//	← {"id":1,"answer":{"first":17,"room":999}}
//	→ {"id":2,"op":"outcomes","message":{"client":"c1","after":"…","wait":20}}
//	← {"id":2,"answer":{"at":"…","outcomes":[{"id":17,"value":0.3,"task":"worker-0"}]}}
//
// A request has an ID that its answer repeats; answers come in any order. The operations
// schedule, join and done are performed one after the other, in the order of their lines, and
// the others at once. Lines without an ID are events: "open" comes first and contains the
// answer to the operation open, and "over" reports how the run has ended.
//
// At the end of the input the service ends, once the closures of all requests are in the queue,
// where they continue; other requests get no answer. It fails if no closure gets into the queue
// for a minute.
package coordinate
