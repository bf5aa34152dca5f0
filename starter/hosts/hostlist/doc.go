// Package hostlist reads which hosts a run is to have, in the words of mpirun, and decides
// which task goes to which of them. It asks nobody: what only a host knows is given to it.
package hostlist
