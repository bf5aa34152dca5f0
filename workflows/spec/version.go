package spec

// Version is clusterrun's version, which covers the commands, the host worker, the task API and the
// Python package. CHANGELOG.md lists the changes in each version.
const Version = "0.5.0"
