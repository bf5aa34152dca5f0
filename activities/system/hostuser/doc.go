// Package hostuser looks up the users of a host and acts as one of them.
//
// A host worker that runs as root starts a run's tasks as the user that the host's policy names,
// and also does its own work in their directories as that user ([User.Do]). A user's files in them,
// such as a symbolic link to one of root's files, lead no further than the user could go. This also
// makes homes work on a file server that maps root to an unprivileged user. The user is recorded
// when the run is reserved, and is never derived from the files: directories can be moved, and
// replaced by links.
//
// # Lookup
//
// Users come from getent(1) and their groups from id(1), which consult the sources in
// nsswitch.conf(5) even if the binary was built without cgo; each command gets ten seconds. PAM is
// not consulted. Tasks have the host worker's limits, and a task that needs a login shell's files
// can be one (bash -lc).
package hostuser
