package spec

// Version is the version of clusterrun: of the commands, the host worker, the task API and
// the Python package. CHANGELOG.md tells what each has brought.
const Version = "0.5.0"
