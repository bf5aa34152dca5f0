package activities

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// PolicyRequest returns the request to the policy for the process of a task. ships is the
// directory of what the run ships.
func PolicyRequest(s *spec.RunSpec, t spec.Task, ships string, signers []string) policy.Request {
	dir := dirIn(ships, s, t)
	r := policy.Request{
		Signers: signers, Directories: []string{known(ships, resolved(dir))},
		Env: slices.Sorted(maps.Keys(t.Env)), Problem: goesUp(s, t),
	}
	base := os.Environ()
	for _, name := range r.Env {
		switch v := t.Env[name]; {
		case v.From.FromFile != "":
			r.SecretFiles = append(r.SecretFiles, filepath.Clean(v.From.FromFile))
		case v.From.FromEnv != "":
			r.SecretEnv = append(r.SecretEnv, v.From.FromEnv)
		default:
			base = append(base, name+"="+v.Value)
		}
	}
	if len(t.Command) > 0 {
		r.Program = known(ships, inRealDir(lookPath(t.Command[0], dir, base)))
	}
	if s.Logs.Dir != "" && s.Logs.Dir != spec.NullDir {
		r.Directories = append(r.Directories, resolved(s.Logs.Dir))
	}
	return r
}

func (g *gate) requestFor(run runkey.Run, s *spec.RunSpec, t spec.Task, signers []string) policy.Request {
	return PolicyRequest(s, t, g.ships.shipsTo(run, s), signers)
}

// goesUp returns the problem if a path of a task has an element .., which may lead elsewhere
// after a link; empty if none has.
func goesUp(s *spec.RunSpec, t spec.Task) string {
	paths := []struct{ field, path string }{{"dir", t.Dir}, {"logs.dir", s.Logs.Dir}}
	if len(t.Command) > 0 {
		paths = append(paths, struct{ field, path string }{"command[0]", t.Command[0]})
	}
	for _, p := range paths {
		if slices.Contains(strings.Split(p.path, "/"), "..") {
			return fmt.Sprintf("%s %s has .., which a policy does not follow; write the path without", p.field, p.path)
		}
	}
	return ""
}

// inRealDir resolves the links in the directory of a program, but not the program itself.
func inRealDir(program string) string {
	program = filepath.Clean(program)
	return filepath.Join(resolved(filepath.Dir(program)), filepath.Base(program))
}

// resolved resolves the links in the existing part of a directory's path.
func resolved(dir string) string {
	dir = filepath.Clean(dir)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	if parent := filepath.Dir(dir); parent != dir {
		return filepath.Join(resolved(parent), filepath.Base(dir))
	}
	return dir
}

// known returns a path in the form that a policy uses, with what the run ships below ship:/.
func known(ships, path string) string {
	if ships == "" {
		return path
	}
	for _, root := range []string{ships, resolved(ships)} {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return policy.Shipped + strings.TrimPrefix(filepath.Clean("/"+rel), "/")
		}
	}
	return path
}
