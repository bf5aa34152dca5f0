// Package web serves the pages of package [page] to a browser of one user: lists of runs and
// hosts, the page of a run, its output, and requests to it. `clusterrun ui` and `clusterrun dev`
// use it.
//
//	browser ──► gate ──► / /hosts /runs/ID ──► facts ──► starter, logs of tasks
//	              │
//	              └────► /namespaces/ ──► a redirect to Temporal's Web UI, which has its own port and token
//
// # Who may read
//
// Anyone who can change a run can execute commands as its user. The gate admits requests with
// the token of the link that is printed at the start. A cookie replaces it. Scripts cannot read it, and
// other sites do not send it. Browsers send it to all ports of this machine, so it admits only
// programs of the user with the browser. The gate refuses requests for other names of this
// machine and from pages of other origins. A request that changes something needs a second
// token, which forms on the pages have. Pages hold browsers to a policy without inline scripts,
// and no other page can have them in a frame.
//
// # Cost
//
// Nothing is asked while no page is open. Open pages share what was asked, and the time between
// questions is at least a multiple of the time that the last one took.
package web
