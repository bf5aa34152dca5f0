// Package spec defines clusterrun's contract: the input that starts a run, its results, and every
// name that crosses the wire.
//
// The input is a [RunSpec], which Temporal receives as JSON, and which people write as YAML, JSON
// or flags. The output is a [RunResult], which is a successful run's result, or is contained in the
// error details of a failed or cancelled run. A [Status] answers the only query. The package does
// not read clocks or files, and is safe to call from workflow code, except that [DecodeYAML] is for
// user input, before a workflow starts.
//
// Reading a spec has two steps, and both report every problem they find. [Decode] checks the
// document against the Go types. Each unknown field or wrong type is a problem, with the field's
// path and the remedy. [RunSpec.Validate] checks the values against the rules. Decode also calls
// Validate on the readable part of the document, so that an error lists every problem.
// [RunSpec.WithDefaults] completes a valid spec.
//
//	document ─parse─► nodes ─fill─► RunSpec ─complete─► ─validate─► RunSpec
//	           │               │        caller's flags        │
//	           └── syntax ─────┴── fields, types ── rules ────┴──► InvalidSpecError
//
// The nodes (node.go) preserve what encoding/json drops: the order, duplicate keys, lines, and how
// a number was spelled. One table (fields.go) describes each field. It is the source of [Schema],
// the JSON Schema; [Flags], the command-line flags; [Reference], the documentation; the defaults;
// the checks of single values; and the remedies. To add a field, add it to the table and to its Go
// type, and write the code that uses it. Only rules that compare fields need separate code
// (validate*.go). testdata/bad contains the message for each mistake.
//
// The messages in texts.go repeat other systems' wording, which users know.
package spec
