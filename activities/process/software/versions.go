package software

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// Names of [Record.Versions].
const (
	Kernel       = "kernel"
	Distribution = "distribution"
	NVIDIADriver = "NVIDIA driver"
	AMDDriver    = "AMD driver"
	GPUs         = "GPUs"
	CUDA         = "CUDA toolkit"
	NCCL         = "NCCL library"
)

// driverVersion finds the version of NVIDIA's driver in its own account.
var driverVersion = lazyregexp.New(`(?m)^NVRM version:.*?\s([0-9]+\.[0-9.]+)(?:\s|$)`)

// versions returns the versions of a host, whose files are below root.
func versions(root string) map[string]string {
	all := map[string]string{}
	add := func(name, version string) {
		if version = strings.TrimSpace(version); version != "" {
			all[name] = version
		}
	}
	first := func(path string) string {
		const most = 4 << 10
		text, _ := readSome(filepath.Join(root, path), most)
		return text
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		add(Kernel, unix.ByteSliceToString(u.Release[:])+" "+unix.ByteSliceToString(u.Machine[:]))
	}
	for line := range strings.Lines(first("etc/os-release")) {
		if value, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			add(Distribution, strings.Trim(strings.TrimSpace(value), `"'`))
		}
	}
	if m := driverVersion().FindStringSubmatch(first("proc/driver/nvidia/version")); m != nil {
		add(NVIDIADriver, m[1])
	} else {
		add(NVIDIADriver, first("sys/module/nvidia/version"))
	}
	add(AMDDriver, first("sys/module/amdgpu/version"))
	add(GPUs, gpus(root))
	var toolkit struct {
		CUDA struct {
			Version string `json:"version"`
		} `json:"cuda"`
	}
	if text, err := readSome(filepath.Join(root, "usr/local/cuda/version.json"), maxPaths); err == nil && json.Unmarshal([]byte(text), &toolkit) == nil {
		add(CUDA, toolkit.CUDA.Version)
	}
	for _, pattern := range []string{"usr/lib/*-linux-gnu/libnccl.so.*.*", "usr/lib64/libnccl.so.*.*", "usr/local/lib/libnccl.so.*.*"} {
		if files, _ := filepath.Glob(filepath.Join(root, pattern)); len(files) > 0 {
			_, version, _ := strings.Cut(filepath.Base(files[0]), ".so.")
			add(NCCL, version)
			break
		}
	}
	return all
}

// gpus returns the models of NVIDIA's GPUs: "8 × NVIDIA H100 80GB HBM3".
func gpus(root string) string {
	files, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	var models []string
	count := map[string]int{}
	for _, file := range files {
		text, _ := readSome(file, maxPaths)
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(line, "Model:"); ok {
				model := strings.TrimSpace(value)
				if count[model]++; count[model] == 1 {
					models = append(models, model)
				}
			}
		}
	}
	for i, model := range models {
		models[i] = fmt.Sprintf("%d × %s", count[model], model)
	}
	return strings.Join(models, ", ")
}
