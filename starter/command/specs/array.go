package specs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// Array holds the flags that turn a run into a sweep.
type Array struct {
	flags       *pflag.FlagSet
	grid        string
	atMost      int
	maxFailures int
}

// Register adds the flags. atMost describes the default of --at-most.
func (f *Array) Register(fs *pflag.FlagSet, atMost string) {
	f.flags = fs
	fs.StringVar(&f.grid, "array", "", "start a run for each combination of a `GRID`, such as 'lr=1e-3,3e-4 seed=0..9', or @FILE in CSV")
	fs.IntVar(&f.atMost, "at-most", 0, "with --array: run at most `N` trials at a time (default "+atMost+")")
	fs.IntVar(&f.maxFailures, "max-failures", 0, "with --array: start no more trials after `N`+1 failures")
}

// Changed reports whether --array is given.
func (f *Array) Changed() bool { return f.flags.Changed("array") }

// Given reports whether the run is to be a sweep. The other flags require --array.
func (f *Array) Given() (bool, error) {
	if f.flags.Changed("array") {
		return true, nil
	}
	for _, name := range []string{"at-most", "max-failures"} {
		if f.flags.Changed(name) {
			return false, cli.Usagef("--%s requires --array; add --array, or omit the flag", name)
		}
	}
	return false, nil
}

// Sweep checks all trials and returns the run's sweep. atMost is the default of --at-most.
func (f *Array) Sweep(a *cli.App, s *spec.RunSpec, id string, atMost int) (*sweep.Spec, error) {
	grid, err := f.read(a)
	if err != nil {
		return nil, cli.Usagef("--array%s: %s", f.file(), err)
	}
	out := &sweep.Spec{Run: s, Grid: grid}
	if out.Rules, err = f.Rules(sweep.Rules{AtMost: atMost}); err != nil {
		return nil, err
	}
	if _, err := out.Check(id); err != nil {
		return nil, cli.Usagef("--array: %s", err)
	}
	return out, nil
}

// Rules returns r, overridden by the flags.
func (f *Array) Rules(r sweep.Rules) (sweep.Rules, error) {
	if f.flags.Changed("at-most") {
		r.AtMost = f.atMost
	}
	if r.AtMost < 1 || r.AtMost > sweep.MaxAtOnce {
		return r, cli.Usagef("--at-most %d: use 1 to %d", r.AtMost, sweep.MaxAtOnce)
	}
	if f.flags.Changed("max-failures") {
		r.MaxFailures = &f.maxFailures
		if f.maxFailures < 0 {
			return r, cli.Usagef("--max-failures %d: use 0 or more", f.maxFailures)
		}
	}
	return r, nil
}

// file returns the part of messages that names the file.
func (f *Array) file() string {
	if strings.HasPrefix(f.grid, "@") {
		return " " + f.grid
	}
	return ""
}

func (f *Array) read(a *cli.App) (sweep.Grid, error) {
	name, isFile := strings.CutPrefix(f.grid, "@")
	if !isFile {
		return sweep.ProductGrid(f.grid)
	}
	in := a.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return sweep.Grid{}, fmt.Errorf("cannot read it: %w. Name a CSV file", reasonOf(err))
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, sweep.MaxTableBytes+1))
	if err != nil {
		return sweep.Grid{}, fmt.Errorf("cannot read it: %w. Name a CSV file", reasonOf(err))
	}
	return sweep.TableGrid(text)
}

// reasonOf returns a file error's cause without the path and the call.
func reasonOf(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}
