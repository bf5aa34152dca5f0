package retention

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"sync"
)

// Host returns an ID of this machine, which distinguishes machines that share a log directory. It
// is empty if unknown.
var Host = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/etc/machine-id")
	if id = bytes.TrimSpace(id); len(id) == 0 || string(id) == "uninitialized" {
		name, _ := os.Hostname() // if there is no name, no note belongs to this machine
		return name
	}
	// The ID itself must not be published; see machine-id(5).
	sum := sha256.Sum256(append([]byte("clusterrun logs "), id...))
	return hex.EncodeToString(sum[:8])
})

// IsOfThisHost reports whether the run's host worker is on this machine.
func (n Note) IsOfThisHost() bool { return n.Host != "" && n.Host == Host() }
