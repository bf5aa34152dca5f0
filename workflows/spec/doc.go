// Package spec is the contract of clusterrun: the input that starts a run, its results, and
// every name that crosses the wire.
//
// A [RunSpec] goes in, as JSON to Temporal and as YAML, JSON or flags from people. A
// [RunResult] comes out: as the result of a run that succeeded, and in the details of the error
// of one that failed or was cancelled. A [Status] is the answer of the one query. The package
// is a leaf: it knows no other package of this module, reads no clock and no file, and is safe
// to call from workflow code ([DecodeYAML] is meant for the input of users, before that).
//
// Reading a spec has two steps, and both report every problem they find. [Decode] checks the
// document against the Go types: unknown fields and wrong types are problems, each with the
// path of the field and the remedy. [RunSpec.Validate] checks the values against the rules;
// Decode runs it too, on all of the document that could be read, so that one answer names
// everything. [RunSpec.WithDefaults] completes a valid spec.
//
//	document ─parse─► nodes ─fill─► RunSpec ─complete─► ─validate─► RunSpec
//	           │               │        caller's flags        │
//	           └── syntax ─────┴── fields, types ── rules ────┴──► InvalidSpecError
//
// The nodes (node.go) keep what encoding/json forgets: order, repeated keys, lines, and how a
// number was spelt. One table (fields.go) describes each field, and these come from it:
// [Schema], the JSON Schema; [Flags], the flags of the command line; [Reference], the
// documentation; the defaults; the checks of single values; and the remedies. So a field is
// added by an entry in the table, one in its Go type, and the code that uses it. Only rules
// that compare fields with each other are code of their own (validate*.go). testdata/bad has
// the message for each mistake.
//
// The texts in texts.go repeat the words of the systems that users come from.
package spec
