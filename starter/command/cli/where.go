package cli

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
)

// These are the descriptors that `supervise` inherits: the first one ends when its owner is
// gone, and tasks can get the others if the options say so.
const (
	LifelineFD = 3 + iota
	StdinFD
	StdoutFD
	StderrFD
	SideFD // see ownersSideFlag
)

// ClientCertificate is the variable that names the file of a client's certificate.
const ClientCertificate = "TEMPORAL_TLS_CLIENT_CERT_PATH"

// DevLock is the name of the file that a running `clusterrun dev` locks. The file has its pid.
const DevLock = "dev.lock"

// DevPID returns the pid of the running `clusterrun dev` for use in messages.
func DevPID(stateDir string) string {
	pid, _ := os.ReadFile(filepath.Join(stateDir, DevLock))
	return cmp.Or(string(bytes.TrimSpace(pid)), "unknown")
}
