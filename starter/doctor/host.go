package doctor

import (
	"os"
	"path/filepath"
	"strings"
)

// Host holds the facts that the kernel reports about a host. An unknown number is 0.
type Host struct {
	NVIDIADriver  string // its version, or empty if it is not loaded
	NVIDIADevices int    // device files
	NVIDIAOnBus   int
	Cgroups       string // their versions
}

const cgroupsV2 = "version 2 cgroups"

// ReadHost reads the files under root, which is / except in tests.
func ReadHost(root string) Host {
	h := Host{NVIDIADevices: len(below(root, "dev/nvidia[0-9]*"))}
	switch {
	case exists(root, "sys/fs/cgroup/cgroup.controllers"):
		h.Cgroups = cgroupsV2
	case exists(root, "sys/fs/cgroup/unified/cgroup.procs"):
		h.Cgroups = "version 1 cgroups, and version 2 without controllers (hybrid)"
	case len(below(root, "sys/fs/cgroup/*")) > 0:
		h.Cgroups = "version 1 cgroups"
	default:
		h.Cgroups = "no cgroups"
	}
	// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  ..."
	for _, word := range strings.Fields(text(root, "proc/driver/nvidia/version")) {
		if word[0] >= '0' && word[0] <= '9' && strings.Contains(word, ".") {
			h.NVIDIADriver = word
			break
		}
	}
	for _, device := range below(root, "sys/bus/pci/devices/*") {
		vendor, class := content(filepath.Join(device, "vendor")), content(filepath.Join(device, "class"))
		if strings.TrimSpace(vendor) == "0x10de" && strings.HasPrefix(class, "0x03") { // a display controller
			h.NVIDIAOnBus++
		}
	}
	return h
}

func below(root, pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(root, pattern)) // the pattern is valid
	return found
}

func exists(root, path string) bool {
	_, err := os.Stat(filepath.Join(root, path))
	return err == nil
}

func text(root, path string) string { return content(filepath.Join(root, path)) }

// content returns a file's content, or "" if it cannot be read.
func content(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}
