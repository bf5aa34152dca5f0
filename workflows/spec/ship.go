package spec

import (
	"fmt"
	"path/filepath"
	"reflect"
)

// Ship says which directory a run takes along to its hosts. In YAML and JSON a text alone is
// the directory.
type Ship struct {
	// Dir and what follows it are for whoever starts the run, who packs the directory.
	Dir     string   `json:"dir,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	Limit   string   `json:"limit,omitempty"`
	// Archive is what was packed; nil: nothing yet.
	Archive *Archive `json:"archive,omitempty"`
	// From has the archive; nil: the hosts of the run have got it from whoever started it.
	From *HostService `json:"from,omitempty"`
}

// Archive is the content of a directory at one time.
type Archive struct {
	// Digest is the SHA-256 of the archive, in hex.
	Digest string `json:"digest"`
	// Size is in bytes.
	Size  int `json:"size"`
	Files int `json:"files"`
}

// DefaultShipLimit is how much a run ships at most unless its spec says otherwise.
const DefaultShipLimit = "512MiB"

var shipType = reflect.TypeFor[Ship]()

// Ships reports whether the run takes a directory along.
func (s *RunSpec) Ships() bool { return s.Ship.Dir != "" || s.Ship.Archive != nil }

func checkExclude(c *checker, path, pattern string) {
	if pattern == "" {
		c.add(path, "is empty, and matches nothing", `write a pattern as in .gitignore, such as "*.ckpt"`)
	}
	checkText(c, path, pattern)
}

func checkSizeText(c *checker, path, text string) {
	if text != "" {
		_, err := ParseSize(text)
		c.addError(path, err)
	}
}

// checkDirs checks the working directories: in what is shipped, or absolute.
func checkDirs(c *checker, s *RunSpec) {
	if !s.Ships() && (len(s.Ship.Exclude) > 0 || s.Ship.Limit != "") {
		c.add("ship.dir", "missing", "name the directory to ship")
	}
	check := func(path, dir string) {
		switch {
		case !s.Ships() || dir == "" || filepath.IsAbs(dir):
			checkDir(c, path, dir)
		case checkText(c, path, dir) && !filepath.IsLocal(dir):
			c.add(path, fmt.Sprintf("%s leaves the directory that the run ships", Quote(dir)), "name one in it, such as src, or an absolute one of the hosts")
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
