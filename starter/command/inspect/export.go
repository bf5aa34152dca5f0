package inspect

import (
	"cmp"
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

func Export(a *cli.App) *cobra.Command {
	var o exportOptions

	cmd := &cobra.Command{
		Use:   "export [flags] RUN",
		Short: "Write a run to a file: an archive, or a page for a browser",
		Args:  o.runs.Args(cli.OneArg("RUN")),
		RunE:  func(cmd *cobra.Command, args []string) error { return runExport(cmd.Context(), a, args, &o) },
	}
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "`FILE` to write, which must not exist, or - for stdout; default: the run ID with .tar.gz or .html")
	cmd.Flags().StringVar(&o.format, "format", formatArchive, "`archive|html`: an archive of everything, or a page for a browser")
	cmd.Flags().BoolVar(&o.logs, "logs", false, "include the processes' output")
	o.runs.Flags(cmd)
	return cmd
}

// exportOptions holds the flags of [Export].
type exportOptions struct {
	file, format string
	logs         bool
	runs         cli.RunSelector
}

// The values of --format.
const (
	formatArchive = "archive"
	formatHTML    = "html"
)

// check refuses incompatible flags.
func (o *exportOptions) check(a *cli.App) error {
	switch {
	case o.format == formatHTML && o.logs:
		return cli.Usagef("--logs requires --format archive: a page always includes the end of the output")
	case o.format != formatArchive && o.format != formatHTML:
		return cli.Usagef("--format %q: use %s or %s", o.format, formatArchive, formatHTML)
	case o.file == "-" && pty.Is(tasklog.FileOf(a.Out)):
		return cli.Usagef("-o -: stdout is a terminal; redirect it to a file or a program")
	}
	if _, err := os.Lstat(o.file); err == nil && o.file != "-" {
		return cli.ThereAlready(o.file)
	}
	return nil
}

// runExport runs the command [Export].
func runExport(ctx context.Context, a *cli.App, args []string, o *exportOptions) error {
	if err := o.check(a); err != nil {
		return err
	}
	ctx, done := cli.EndedBy(ctx)
	defer done()
	return cli.WithRun(ctx, a, &o.runs, args, func(r *starter.Run, _ []string) (err error) {
		if o.format == formatHTML {
			err = exportHTML(ctx, a, r, o.file)
		} else {
			err = export(ctx, a, r, o.file, o.logs)
		}
		if err != nil && ctx.Err() != nil {
			return cli.ErrNothingWritten
		}
		return err
	})
}

func export(ctx context.Context, a *cli.App, r *starter.Run, file string, logs bool) error {
	of, err := AccountHere(ctx, r)
	if err != nil {
		return err
	}
	histories, err := runrecord.History(ctx, r)
	if err != nil {
		return err
	}
	file = cmp.Or(file, runrecord.DirName(r.ID)+".tar.gz")
	kept := r.Files(of.Status)
	defer kept.Close()
	if err := of.AddFiles(ctx, kept); err != nil && !logs {
		a.Say("it does not show how some processes were started: %s", err) // with --logs, what is missing is listed later
	}
	if of.Metrics, err = runrecord.Metrics(ctx, kept, of.Status.Tasks); err != nil {
		a.Say("it omits some tasks' metrics: %s", err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var output exportedLogs
	if logs {
		dir, err := copiesDir(a, file)
		if err != nil {
			return err
		}
		if output, err = allLogs(ctx, a, kept, dir); err != nil {
			return err
		}
		defer output.remove()
	}
	if of.Spec == nil {
		a.Say("run %s: %s; the file only contains the stored form", r.ID, whyNoSpec(of))
	} else if names := specs.SecretsInClear(of.Spec); len(names) > 0 {
		a.Say("%s: probably secret, judging by its name; the file contains it, like the run's history", shorten.List(names, cli.MaxNames))
	}
	if file == "-" {
		err = runrecord.Pack(cli.UntilDone{Ctx: ctx, W: a.Out}, of, histories, output.dirs)
	} else {
		err = exportFile(ctx, a, of, file, func(w io.Writer) error { return runrecord.Pack(w, of, histories, output.dirs) })
	}
	if err == nil && len(output.missing) > 0 {
		a.Say("output of run %s that cannot be read is left out:\n%s", r.ID, strings.Join(list.Of(output.missing, files.Missing.String), "\n"))
		err = &cli.ExitError{Code: exitcode.Machinery}
	}
	return err
}

// exportFile writes a file about a run and prints its name.
func exportFile(ctx context.Context, a *cli.App, of *runrecord.Account, file string, write func(io.Writer) error) error {
	if err := cli.WriteNew(ctx, file, write); err != nil {
		return err
	}
	return a.PrintLine(map[string]any{"run_id": of.Status.RunID, "execution_id": of.Status.ExecutionID, "file": file}, "%v", file)
}
