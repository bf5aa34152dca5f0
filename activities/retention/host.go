package retention

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"sync"
)

// Host returns what tells this machine from others with which it may share a log directory.
// Empty: nothing does.
var Host = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/etc/machine-id")
	if id = bytes.TrimSpace(id); len(id) == 0 || string(id) == "uninitialized" {
		name, _ := os.Hostname() // whoever has none has no note that is its own
		return name
	}
	// Nobody is to be told the ID itself: machine-id(5).
	sum := sha256.Sum256(append([]byte("clusterrun logs "), id...))
	return hex.EncodeToString(sum[:8])
})

// IsOfThisHost reports whether the run's host worker is on this machine.
func (n Note) IsOfThisHost() bool { return n.Host != "" && n.Host == Host() }
