// Package outcome describes the end of a run. A [spec.RunResult] has the facts as fields, and
// only this package turns them into text, when they are read: [Sentence] is the message of the
// run's error and of its result, so that the terminal, the Web UI and JSON say the same, and
// [Lines] has the rest.
//
// It is pure, and workflow code calls it: its results depend on its arguments only.
//
// Some sentences are TensorFlow's and torch's. Programs and people search logs for them.
package outcome
