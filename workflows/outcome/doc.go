// Package outcome says how a run ended. A [spec.RunResult] has the facts as fields, and this package
// alone makes words of them, where they are read: [Sentence] is the message of the run's error and of
// its result, so that the terminal, the Web UI and JSON say the same, and [Lines] has the rest.
//
// It is pure, and workflow code calls it: what it returns depends on its arguments only.
//
// Some sentences are those of TensorFlow and torch. Programs and people search logs for them.
package outcome
