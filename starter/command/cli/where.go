package cli

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
)

// The descriptors that `supervise` inherits: one on which it sees that its owner is
// gone, and those that tasks can get, as far as its options speak of them.
const (
	LifelineFD = 3 + iota
	StdinFD
	StdoutFD
	StderrFD
	SideFD // see ownersSideFlag
)

// ClientCertificate is the variable that says with which certificate a client comes.
const ClientCertificate = "TEMPORAL_TLS_CLIENT_CERT_PATH"

// DevLock is the name of the file that a dev holds, with its pid.
const DevLock = "dev.lock"

// DevPID returns the pid of the dev that runs, for people.
func DevPID(stateDir string) string {
	pid, _ := os.ReadFile(filepath.Join(stateDir, DevLock))
	return cmp.Or(string(bytes.TrimSpace(pid)), "unknown")
}
