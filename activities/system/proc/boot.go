package proc

import (
	"os"
	"strings"
	"sync"
)

// BootID returns the ID of this boot of the machine, or "" if it cannot be read. Times since boot,
// and process IDs, can be compared only within the same boot.
func BootID() string { return bootID() }

var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})

// Namespace returns one of this process's namespaces, for example "pid", the namespace of process
// IDs. It returns "" if the namespace cannot be read.
func Namespace(name string) string {
	ns, err := os.Readlink("/proc/self/ns/" + name)
	if err != nil {
		return ""
	}
	return ns
}
