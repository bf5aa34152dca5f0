// Package coordinate is a coordinator for programs of any language: requests and
// answers are lines of JSON, on stdin and stdout of `clusterrun coordinate RUN`, or
// on a descriptor that `clusterrun run` was given.
//
//	→ {"id":1,"op":"schedule","closures":[{"function":"step","args":[1]}]}
//	← {"id":1,"ids":[17]}
//	→ {"id":2,"op":"fetch","ids":[17]}
//	← {"id":2,"outcomes":[{"value":0.3}]}
//
// A request has an ID that its answer repeats; answers come in any order. The
// operations are
//
//	schedule  closures  takes them in this order, and answers with their ids
//	call      closures  the same, and answers with their outcomes once all have ended
//	fetch     ids       answers with their outcomes once all have ended
//	join                answers once everything scheduled has been called
//	done                answers with done: whether that is so
//	cancel    ids       cancels these, or all if there are none
//
// schedule, call, join and done are taken up in the order of their lines. While one of
// them waits, as a schedule on a full queue does, those behind it stand in line, and
// the others go on; only when 64 MiB stand there nothing more is read. What is
// refused is the error of its own answer, or of its outcome there, and of no other; a
// field that does not exist is refused, too. The error of a closure that was called is
// raised by a later schedule, call, join or done, and is the error of that answer.
// Lines without an ID are news: event "open" says that requests are taken, and event
// "over" that the run has ended and how.
//
// The end of the input ends it, once what was to be scheduled is in the queue, and
// these requests are answered; join, call and fetch wait no longer. Where nothing gets
// into the queue for a minute, that is an error. What is in the queue goes on.
package coordinate
