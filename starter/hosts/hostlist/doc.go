// Package hostlist parses mpirun's lists of hosts, and assigns each task to a host. It does not
// make requests; its callers pass in the facts that only a host knows.
package hostlist
