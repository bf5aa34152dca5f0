package resources

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// Models returns the driver's names of this host worker's GPUs, unordered. A name is empty if the
// driver does not report it.
func (g GPUs) Models() []string { return g.models("/") }

func (g GPUs) models(root string) []string {
	models := make([]string, len(g.Visible))
	listed, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information")) // the pattern is valid
	for i := range models {
		if i < len(listed) {
			models[i] = modelIn(listed[i])
		}
	}
	return models
}

func modelIn(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if model, ok := strings.CutPrefix(lines.Text(), "Model:"); ok {
			return strings.TrimSpace(model)
		}
	}
	return ""
}
