package spec

import (
	"fmt"
	"path/filepath"
	"reflect"
)

// Ship says which directory a run takes along to its hosts. In YAML and JSON a bare text is the
// directory.
type Ship struct {
	// Dir, Exclude and Limit are for the starter of the run, which packs the directory.
	Dir     string   `json:"dir,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	Limit   string   `json:"limit,omitempty"`
	// Archive describes the packed directory. It is nil until the directory is packed.
	Archive *Archive `json:"archive,omitempty"`
	// From is the host that has the archive. It is nil if the starter has put the archive on
	// the hosts of the run.
	From *HostService `json:"from,omitempty"`
	// Sweep is the sweep whose trials share the directory on each host. The sweep sets it.
	Sweep *ShipSweep `json:"sweep,omitempty"`
}

// ShipSweep names a sweep.
type ShipSweep struct {
	ID string `json:"id"`
	// Execution is the first execution of its workflow.
	Execution string `json:"execution"`
}

// Archive is the content of a directory at one time.
type Archive struct {
	// Digest is the SHA-256 of the archive, in hex.
	Digest string `json:"digest"`
	// Size is in bytes.
	Size  int `json:"size"`
	Files int `json:"files"`
}

// DefaultShipLimit is the most that a run ships unless its spec says otherwise.
const DefaultShipLimit = "512MiB"

var shipType = reflect.TypeFor[Ship]()

// Ships reports whether the run takes a directory along.
func (s *RunSpec) Ships() bool { return s.Ship.Dir != "" || s.Ship.Archive != nil }

func checkExclude(c *checker, path, pattern string) {
	if pattern == "" {
		c.add(path, "is empty", `write a pattern as in .gitignore, such as "*.ckpt"`)
	}
	checkText(c, path, pattern)
}

func checkSizeText(c *checker, path, text string) {
	if text != "" {
		_, err := ParseSize(text)
		c.addError(path, err)
	}
}

// checkDirs checks the working directories, which must be inside the shipped directory or
// absolute.
func checkDirs(c *checker, s *RunSpec) {
	if !s.Ships() && (len(s.Ship.Exclude) > 0 || s.Ship.Limit != "") {
		c.add("ship.dir", "missing", "name the directory to ship")
	}
	check := func(path, dir string) {
		switch {
		case !s.Ships() || dir == "" || filepath.IsAbs(dir):
			checkDir(c, path, dir)
		case checkText(c, path, dir) && !filepath.IsLocal(dir):
			c.add(path, fmt.Sprintf("%s is outside the directory that the run ships", Quote(dir)), "name one in it, such as src, or an absolute one of the hosts")
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
