// Package web serves the pages of package [page] to one user's browser: lists of runs and hosts,
// a run's page, its output, and requests to it. `clusterrun ui` and `clusterrun dev` use it.
//
//	browser ──► gate ──► / /hosts /runs/ID ──► facts ──► starter, logs of tasks
//	              │
//	              └────► /namespaces/ ──► a redirect to Temporal's Web UI, which has its own port and token
//
// # Who may read
//
// Anyone who can change a run can execute commands as its user. The gate admits requests with the
// token in the link that is printed at startup. After that, a cookie replaces the token. Scripts
// cannot read the cookie, and browsers do not send it with requests from other sites. But browsers
// send it to all ports of this machine, so it admits only programs of the browser's user. The gate
// refuses requests for other names of this machine and from pages of other origins. A request that
// changes something requires a second token, which the pages' forms contain. Pages have a policy
// without inline scripts, and no other page can frame them.
//
// # Cost
//
// While no page is open, the server does not send any queries. Open pages share the answers, and
// the interval between queries is at least a multiple of the time that the last one took.
package web
