package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/disk"
	"github.com/clusterrun/clusterrun/starter/command/look"
	"github.com/clusterrun/clusterrun/starter/doctor"
	"github.com/clusterrun/clusterrun/starter/doctor/debugbundle"
	"github.com/clusterrun/clusterrun/starter/record"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// bundleTakes bounds the requests to the server about a run.
const bundleTakes = 30 * time.Second

// writeBundle writes the findings of doctor to a file, with other information for support. For
// a run that is named it includes the server's record of it.
func writeBundle(ctx context.Context, a *cli.App, file string, found []doctor.Finding, args []string) error {
	ctx, done := cli.EndedBy(ctx)
	defer done()
	b, lacking := gather(ctx, a, found, args)
	m := b.Manifest(spec.Version, time.Now())
	var err error
	if file == "-" {
		err = b.Write(cli.UntilDone{Ctx: ctx, W: a.Out}, m)
	} else {
		err = cli.WriteNew(ctx, file, func(w io.Writer) error { return b.Write(w, m) })
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return cli.ErrNothingWritten
	case err != nil:
		return err
	}
	for _, l := range m.LeftOut {
		a.Say("left out: %s: %s", l.What, l.Why)
	}
	if lacking != nil {
		return &cli.ExitError{Code: exitcode.Machinery, Cause: fmt.Errorf("run %s is not in it: %w", args[0], lacking)}
	}
	return nil
}

// gather returns the bundle. lacking is the reason if it lacks a run that was named.
func gather(ctx context.Context, a *cli.App, found []doctor.Finding, args []string) (b *debugbundle.Bundle, lacking error) {
	var histories []json.RawMessage
	var of *record.Account
	if len(args) > 0 {
		of, histories, lacking = gatherRun(ctx, a, args[0])
	}
	known := knownSecrets(a)
	if of != nil {
		known = append(known, secretsOf(of.Spec)...)
	}
	b = &debugbundle.Bundle{Scrubber: debugbundle.NewScrubber(known)}
	b.AddJSON("doctor.json", map[string]any{"findings": found})
	b.AddText("doctor.txt", findingsText(found))
	b.AddJSON("version.json", cli.BuildInfo())
	b.AddJSON("configuration.json", configuration(a))
	b.AddJSON("supervisors.json", supervisors(a))
	if u, err := disk.Usage(a, ""); err == nil {
		b.AddJSON("disk.json", u)
	} else {
		b.LeaveOut("disk.json", err)
	}
	addTails := func(folder string, paths []string) {
		for _, path := range paths {
			name, _ := filepath.Rel(a.Global.StateDir, path) // both are absolute
			b.AddTail(filepath.Join(folder, name), path)
		}
	}
	addTails("logs", ownLogs(a))
	addTails("journals", journals(a, b))
	b.LeaveOut("logs of a `clusterrun worker` in the foreground or of a service", errors.New("they go to its terminal or to the journal: journalctl -u clusterrun-worker"))
	b.LeaveOut("values of environment variables, and files of keys, certificates and profiles", errors.New("they may be secrets"))
	b.LeaveOut("database of the server", errors.New("it has the payloads of all runs"))
	switch {
	case lacking != nil:
		b.LeaveOut("run "+args[0], lacking)
	case of != nil:
		b.AddJSON("run/account.json", of)
		b.AddJSON("run/history.json", histories)
		b.LeaveOut("payloads in the history, values of variables in the spec", errors.New("they may be secrets; clusterrun export has them"))
		b.LeaveOut("output of the processes, their results, and messages of failures, which have their last lines", errors.New("they are the program's; clusterrun export --logs has them"))
	}
	return b, lacking
}

// gatherRun returns everything that the server knows about a run.
func gatherRun(ctx context.Context, a *cli.App, id string) (*record.Account, []json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, bundleTakes)
	defer cancel()
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	if id, err = starter.Find(ctx, c, id); err != nil {
		return nil, nil, err
	}
	r := starter.Get(c, id, "")
	of, err := look.AccountOf(ctx, a, r)
	if err != nil {
		return nil, nil, err
	}
	histories, err := r.History(ctx)
	if err != nil {
		return nil, nil, err
	}
	list, err := record.HistoryJSON(histories)
	return of, list, err
}

// harmless are the variables whose values a bundle includes.
var harmless = []string{"CLUSTERRUN_STATE_DIR", "CLUSTERRUN_DEVSERVER", "CLUSTERRUN_CODEC_KEYS", "CLUSTERRUN_API_KEY_FILE",
	"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE", "TMPDIR", "XDG_STATE_HOME", "CUDA_VISIBLE_DEVICES"}

// configuration returns the configuration of this program, without the values of secrets.
func configuration(a *cli.App) map[string]any {
	set := []string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		ours := strings.HasPrefix(name, "CLUSTERRUN_") || strings.HasPrefix(name, "TEMPORAL_")
		switch {
		case slices.Contains(harmless, name):
			set = append(set, name+" is "+value)
		case ours:
			set = append(set, name+" is set")
		}
	}
	slices.Sort(set)
	flags := a.Global.Server
	return map[string]any{
		"state_dir": a.Global.StateDir, "variables": set, "address": flags.Address, "namespace": flags.Namespace,
		"profile": flags.Profile, "config_file": flags.ConfigFile,
		"has_codec_keys": flags.CodecKeys != "", "has_api_key_file": flags.APIKeyFile != "",
	}
}

// supervisorState describes the supervisor of a state directory.
type supervisorState struct {
	Dir      string `json:"dir"`
	Instance string `json:"instance"`
	Running  bool   `json:"running"`
}

// supervisors returns the supervisors of this state directory.
func supervisors(a *cli.App) []supervisorState {
	list := []supervisorState{}
	dirs := []string{a.DevDir(), a.WorkerDir()}
	runs, _ := filepath.Glob(filepath.Join(a.RunsDir(), "*"))
	for _, dir := range append(dirs, runs...) {
		s := supervisorState{Dir: dir, Instance: supervisor.InstanceIn(dir)}
		if s.Instance == "" {
			continue
		}
		s.Running = !supervisor.LockFree(dir)
		list = append(list, s)
	}
	return list
}

// mostRunLogs bounds the logs of host workers of single runs.
const mostRunLogs = 8

// ownLogs returns the logs of servers and host workers, and the latest logs of single runs.
func ownLogs(a *cli.App) []string {
	runs, _ := filepath.Glob(filepath.Join(a.RunsDir(), "*", "worker.log"))
	latestFirst(runs)
	return append([]string{
		a.Home().Log(), filepath.Join(a.Global.StateDir, "dev.log"), filepath.Join(a.DevDir(), "worker.log"), filepath.Join(a.WorkerDir(), "worker.log"),
	}, runs[:min(len(runs), mostRunLogs)]...)
}

// mostJournals bounds the journals of runs.
const mostJournals = 32

// journals returns the latest journals of the supervisors of this state directory. They contain
// nothing of the environment, the arguments or the output of a process.
func journals(a *cli.App, b *debugbundle.Bundle) []string {
	var all []string
	for _, s := range supervisors(a) {
		all = append(all, supervisor.AllJournals(s.Dir)...)
	}
	latestFirst(all)
	if more := len(all) - mostJournals; more > 0 {
		b.LeaveOut(fmt.Sprintf("journals of %d runs", more), errors.New("only the latest are packed"))
		all = all[:mostJournals]
	}
	return all
}

// latestFirst sorts files by the time of their last change, the latest first.
func latestFirst(paths []string) {
	written := make(map[string]time.Time, len(paths))
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil {
			written[path] = info.ModTime()
		}
	}
	slices.SortFunc(paths, func(x, y string) int { return written[y].Compare(written[x]) })
}
