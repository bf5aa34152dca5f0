// Package hostuser looks up the users of a host and acts as one of them.
//
// A host worker that runs as root starts a run's tasks as the user that the host's policy names,
// and also does its own work in their directories as that user ([User.Do]). So a user's files in
// these directories, such as a symbolic link to one of root's files, cannot give access to anything
// that the user could not access. Home directories also work on a file server that maps root to an
// unprivileged user. The user is recorded when the run is reserved, and is never derived from the
// files, because directories can be moved or replaced by links.
//
// # Lookup
//
// Users come from getent(1) and their groups from id(1), which consult the sources in
// nsswitch.conf(5), whereas a binary built without cgo cannot. Each command may take ten seconds.
// PAM is not consulted. Tasks have the host worker's limits, and a task that needs the files that a
// login shell reads can be a login shell (bash -lc).
package hostuser
