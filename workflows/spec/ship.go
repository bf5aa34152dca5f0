package spec

import (
	"fmt"
	"path/filepath"
	"reflect"
)

// Ship describes the directory that a run copies to its hosts. In YAML and JSON, it may be a plain
// string, which is the directory.
type Ship struct {
	// Dir, Exclude and Limit are used by the run's starter, which packs the directory.
	Dir     string   `json:"dir,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	Limit   string   `json:"limit,omitempty"`
	// Archive describes the packed directory. It is nil until the directory is packed.
	Archive *Archive `json:"archive,omitempty"`
	// From is the host that stores the archive, or nil if the starter has put the archive on the
	// run's hosts.
	From *HostService `json:"from,omitempty"`
	// Sweep is set by the sweep that shares the directory among its trials on each host.
	Sweep *ShipSweep `json:"sweep,omitempty"`
}

// ShipSweep identifies a sweep.
type ShipSweep struct {
	ID string `json:"id"`
	// Execution is the sweep workflow's first execution.
	Execution string `json:"execution"`
}

// Archive is a directory snapshot.
type Archive struct {
	// Digest is the SHA-256 of the archive, in hex.
	Digest string `json:"digest"`
	// Size is in bytes.
	Size  int `json:"size"`
	Files int `json:"files"`
}

// DefaultShipLimit limits the size of what a run ships, unless its spec sets a different limit.
const DefaultShipLimit = "512MiB"

var shipType = reflect.TypeFor[Ship]()

// Ships reports whether the run ships a directory.
func (s *RunSpec) Ships() bool { return s.Ship.Dir != "" || s.Ship.Archive != nil }

func checkExclude(c *checker, path, pattern string) {
	if pattern == "" {
		c.add(path, "is empty", `write a pattern in .gitignore syntax, such as "*.ckpt"`)
	}
	checkText(c, path, pattern)
}

func checkSizeText(c *checker, path, text string) {
	if text != "" {
		_, err := ParseSize(text)
		c.addError(path, err)
	}
}

// checkDirs checks that working directories are inside the shipped directory or absolute.
func checkDirs(c *checker, s *RunSpec) {
	if !s.Ships() && (len(s.Ship.Exclude) > 0 || s.Ship.Limit != "") {
		c.add("ship.dir", "missing", "name the directory to ship")
	}
	check := func(path, dir string) {
		switch {
		case !s.Ships() || dir == "" || filepath.IsAbs(dir):
			checkDir(c, path, dir)
		case checkText(c, path, dir) && !filepath.IsLocal(dir):
			c.add(path, fmt.Sprintf("%s is outside the directory that the run ships", Quote(dir)), "use a directory within it, such as src, or an absolute path on the hosts")
		}
	}
	check("dir", s.Dir)
	for i, g := range s.Tasks {
		path := indexPath("tasks", i)
		check(path+".dir", g.Dir)
		for _, index := range sortedKeys(g.Overrides) {
			check(fieldPath(path+".overrides", index)+".dir", g.Overrides[index].Dir)
		}
	}
}
