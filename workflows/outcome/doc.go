// Package outcome puts runs into words, so that the terminal, web pages, the Web UI, webhooks and
// JSON say the same. Only this package does.
//
// A [spec.RunResult] has the end of a run as fields. [Sentence] is the message of the run's error
// and of its result, and [Lines] has the rest.
//
// A [Status] has what is known of a run at a moment. [Facts] makes a list of it: what kind of fact
// each is, how urgent, and a sentence. [News] compares two lists: facts have marks, which do not
// change while time passes.
//
// It is pure, and workflow code calls it: its results depend on its arguments only.
//
// Some sentences are TensorFlow's and torch's. Programs and people search logs for them.
package outcome
