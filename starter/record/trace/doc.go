// Package trace makes an OpenTelemetry trace of a run that has ended, of what its account says:
// the run, its phases and each of its processes. It is in OTLP as JSON, which
// collectors take over HTTP as they take protobuf. Its IDs are in hex; the types of
// go.opentelemetry.io/proto/otlp, as JSON of protobuf, have them in base64.
//
// The ID of the trace is that of the run's execution, and those of its spans follow from what
// they are: a trace that is sent twice is the same one.
package trace
