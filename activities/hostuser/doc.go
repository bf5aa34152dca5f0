// Package hostuser looks up the users of a host and does things as one of them.
//
// A host worker that runs as root starts a run's tasks as the user that the host's policy
// names, and what it does for them in their directories it does as that user, too
// ([User.Do]): whatever a user has put there, such as a symbolic link to a file of root's,
// leads no further than the user could go. It also is what makes homes on a file server
// work that knows no root. Who that user is has been written down when the run was reserved, and
// is never taken from the files: directories can be moved, and links put in their place.
//
// # Lookup
//
// Users come from getent(1) and their groups from id(1), which ask whatever nsswitch.conf(5)
// names, in a binary without cgo as well; they are given ten seconds. PAM is not asked: limits are those of the host
// worker, and what a login shell reads is read by tasks that are one (bash -lc).
package hostuser
