package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/account"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (a *app) importedDir() string { return filepath.Join(a.global.stateDir, "imported") }

func (a *app) importCommand() *cobra.Command {
	var limit string
	cmd := &cobra.Command{
		Use:   "import [flags] FILE",
		Short: "Read a run from a file that export wrote",
		Long: `Unpacks a file that export wrote into the state directory. status, wait, logs, show, diff,
usage, trace and rerun use it if the server does not know the run, or if there is no
server, and say that it was imported. list and du show it, and rm and prune remove it. An
earlier import of the same run is replaced.

The whole file is checked before anything is written. It is refused if it is truncated, of
another version, larger than --limit, or has names, links or sizes that export does not
write.

Exit codes:
  0    imported; the run ID is on stdout
  2    mistake in the command line, or the file is refused
  125  it could not be read or written
  130  interrupted; nothing is written`,
		Example: "  clusterrun import iris-x2k4.tar.gz\n  clusterrun status iris-x2k4",
		Args:    oneArg("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			most, err := spec.ParseSize(limit)
			if err != nil {
				return usagef("--limit %q: %s", limit, err)
			}
			f, err := os.Open(args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return usagef("there is no file %s", args[0])
			}
			if err != nil {
				return err
			}
			defer f.Close()
			if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
				return usagef("%s is not a regular file; import reads a file twice", args[0])
			}
			ctx, done := endedBy(cmd.Context())
			defer done()
			m, err := account.Import(ctx, f, a.importedDir(), most)
			switch {
			case errors.Is(err, account.ErrRefused):
				return usagef("%s: %s", args[0], err)
			case err != nil && ctx.Err() != nil:
				return errNothingWritten
			case err != nil:
				return err
			}
			a.sayEncoded(m)
			if a.global.json {
				return a.printJSON(map[string]any{"run_id": m.RunID, "execution_id": m.ExecutionID})
			}
			_, err = fmt.Fprintln(a.out, m.RunID)
			return err
		},
	}
	cmd.Flags().StringVar(&limit, "limit", "4GiB", "refuse a run that is larger than `SIZE` when unpacked")
	return cmd
}

// sayEncoded names the keys with which an export was left encoded: nobody here can decode it.
func (a *app) sayEncoded(m *account.Manifest) {
	found, err := account.Find(a.importedDir(), m.RunID, m.ExecutionID)
	if err != nil || len(found) == 0 {
		return
	}
	if of, err := found[0].Account(); err == nil && of.Spec == nil {
		a.say("run %s: %s", m.RunID, whyNoSpec(of, true))
	}
}

// importedRuns lists the runs that were imported.
func (a *app) importedRuns(o starter.ListOptions) (runs []starter.Summary, err error) {
	all, err := account.All(a.importedDir())
	for _, i := range all {
		of, err := i.Account()
		if err != nil {
			a.say("%s", err)
			continue
		}
		s := of.Status.Summary(of.Spec)
		if s.Imported = true; o.Lists(s) {
			runs = append(runs, s)
		}
	}
	return runs, err
}

// hasImported reports whether there are imported runs, whichever.
func (a *app) hasImported() bool {
	all, err := account.All(a.importedDir())
	return err == nil && len(all) > 0
}

// isImported reports whether there is an imported run of that ID.
func (a *app) isImported(id string) bool {
	found, err := account.Find(a.importedDir(), id, "")
	return err == nil && slices.ContainsFunc(found, func(i account.Imported) bool { return i.RunID == id })
}

// findImported returns an imported run; nil: there is none.
func (a *app) findImported(id, execution string) (*starter.Run, error) {
	found, err := account.Find(a.importedDir(), id, execution)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if len(found) > 1 {
		ids := make([]string, len(found))
		for i, f := range found {
			ids[i] = f.RunID
		}
		return nil, &starter.AmbiguousError{Beginning: id, RunIDs: ids}
	}
	of, err := found[0].Account()
	if err != nil {
		return nil, err
	}
	r := starter.Past(of.Status)
	if a.imported == nil {
		a.imported = map[*starter.Run]*account.Account{}
	}
	a.imported[r] = of
	a.say("%s", found[0])
	return r, nil
}

// ofImported returns the error for a run that the server does not know, where that is an
// imported one, or the same one with what was probably meant.
func (a *app) ofImported(err error) error {
	var notFound *starter.NotFoundError
	if !errors.As(err, &notFound) {
		return err
	}
	if !a.isImported(notFound.RunID) {
		if a.hint != nil && notFound.Hint == "" {
			notFound.Hint = a.hint(notFound.RunID)
		}
		return err
	}
	return usagef("run %s is an imported one: it can be looked at (status, wait, logs, show, diff, usage, trace), run again (rerun) and removed (rm)", notFound.RunID)
}
