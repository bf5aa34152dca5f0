// Package closures has the tasks of a host call closures, the functions with
// arguments that a coordinator has scheduled.
package closures
