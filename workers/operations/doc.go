// Package operations is the Nexus service of host workers, [runs.Service]: other namespaces, and
// workflows in any language, execute runs through it and wait for them.
//
// An operation is a run: the server calls the operation back when the workflow of the run has
// ended, and passes on cancellations. So no worker holds anything for an open operation.
//
// The ID of a run is made of the ID of the request, and the server starts one workflow for all
// attempts of a request. Input that cannot be run fails the operation before anything starts.
package operations
