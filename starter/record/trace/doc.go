// Package trace makes an OpenTelemetry trace of a run that has ended: the run, its phases and
// each of its processes. It is sent as OTLP in JSON, which collectors accept like protobuf.
// The types of go.opentelemetry.io/proto/otlp are not used, since their JSON has IDs in base64
// and OTLP has them in hex.
//
// The ID of the trace is the ID of the run's execution, and the IDs of its spans are derived
// from their content: sending a trace twice makes no second one.
package trace
