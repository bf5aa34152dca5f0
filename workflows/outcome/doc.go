// Package outcome describes runs in words, so that the terminal, web pages, the Web UI, webhooks
// and JSON agree. No other package describes runs.
//
// A [spec.RunResult] describes a run's end in fields. [Sentence] returns the message for the run's
// error and result, and [Lines] returns the details.
//
// A [Status] contains what is known about a run at a given time. [Facts] derives a list of facts
// with a kind, a severity and a sentence. [News] compares two lists by the facts' marks, which do
// not change over time.
//
// The package is pure, so workflow code can call it.
//
// Some sentences are those of TensorFlow and torch, because programs and people search logs for
// them.
package outcome
