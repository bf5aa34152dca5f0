package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workers/service"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

func workerInstallCommand(a *cli.App) *cobra.Command {
	s := installation{App: a}
	cmd := &cobra.Command{
		Use:   "install [flags]",
		Short: "Write a systemd unit that keeps a host worker running",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	cmd.Flags().BoolVar(&s.forUser, "user", false, "write a user unit instead of a system unit")
	cmd.Flags().StringVar(&s.runAs, "run-as", "", "`USER` as whom the worker of a system unit runs, and without a policy its tasks")
	cmd.Flags().StringVar(&s.name, "name", "clusterrun", "`NAME` of the unit, and of its state directory")
	cmd.Flags().BoolVar(&s.dryRun, "dry-run", false, "print the unit, or with --uninstall what would be removed, and change nothing")
	cmd.Flags().BoolVar(&s.enable, "enable", false, "start it now and at each boot")
	cmd.Flags().BoolVar(&s.uninstall, "uninstall", false, "end the service with its tasks, and remove the unit; state and logs stay")
	s.worker.register(cmd)
	return cmd
}

// installation is a service to install or to remove.
type installation struct {
	*cli.App
	worker                             workerFlags
	forUser, dryRun, enable, uninstall bool
	name, runAs                        string
}

var unitName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

func (s *installation) run(cmd *cobra.Command) error {
	if !unitName().MatchString(s.name) || strings.HasSuffix(s.name, ".service") {
		return cli.Usagef("--name %q: give a name of letters, digits, _, . and -, without .service", s.name)
	}
	if s.uninstall && s.enable {
		return cli.Usagef("--uninstall ends the service; leave --enable out")
	}
	units, environment, err := s.directories()
	if err != nil {
		return err
	}
	path := filepath.Join(units, s.name+".service")
	if !s.forUser && !s.dryRun && os.Geteuid() != 0 {
		return cli.Usagef("%s is root's; call this with sudo, or give --user for a service of yours", path)
	}
	if s.uninstall {
		return s.remove(cmd.Context(), path)
	}
	u, err := s.unit(cmd, filepath.Join(environment, s.name+".env"))
	if err != nil {
		return err
	}
	if s.dryRun {
		s.sayUnknown(u.Environment)
		if s.Global.JSON {
			return s.PrintJSON(map[string]any{"path": path, "unit": u.Text()})
		}
		_, err := fmt.Fprint(s.Out, u.Text())
		return err
	}
	return s.write(cmd.Context(), path, u)
}

// directories returns the directories of units, and of the files with their environment.
func (s *installation) directories() (units, environment string, err error) {
	if !s.forUser {
		return "/etc/systemd/system", "/etc/clusterrun", nil
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return "", "", cli.Usagef("there is no directory for units of yours: %s", err)
	}
	return filepath.Join(config, "systemd", "user"), filepath.Join(config, "clusterrun"), nil
}

// unit returns the unit that the flags describe.
func (s *installation) unit(cmd *cobra.Command, environment string) (service.Unit, error) {
	u := service.Unit{Name: s.name, ForUser: s.forUser, RunAs: s.runAs, Environment: environment}
	if !s.forUser && !cmd.Flags().Changed("state-dir") {
		s.Global.StateDir, u.OwnStateDir = service.StateRoot+s.name, true
	}
	u.StateDir = s.Global.StateDir
	if err := s.CheckUTF8(); err != nil {
		return u, err
	}
	o, err := s.worker.options(s.App, cmd)
	if err != nil {
		return u, err
	}
	u.Controller = o.Role == workers.RoleController
	u.Traversable = o.Policy != "" && s.runAs == ""
	switch {
	case s.runAs != "" && s.forUser:
		return u, cli.Usagef("--run-as is for units of the system; a unit of yours runs as you are: leave it out, or --user")
	case s.runAs != "":
		if err := hostuser.Check(cmd.Context(), s.runAs); err != nil {
			return u, cli.Usagef("--run-as: %s; name one that it has", err)
		}
	case !s.forUser && o.Policy == "":
		return u, cli.Usagef("anyone who can write to the server's namespace would be root here; give --run-as USER, or --policy FILE, which names the users of tasks")
	}
	if u.Program, err = ownProgram(); err != nil {
		return u, err
	}
	u.Args, err = s.args(cmd)
	return u, err
}

// notForWorker are the flags that the worker does not get: they are about the unit or the
// output of this command.
var notForWorker = []string{"user", "run-as", "name", "dry-run", "enable", "uninstall", "json", "color", "state-dir", "help"}

// args returns the flags of the worker.
func (s *installation) args(cmd *cobra.Command) ([]string, error) {
	args := []string{"--state-dir=" + s.Global.StateDir}
	if file := s.Global.Server.ConfigFile; file != "" {
		file, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		s.Global.Server.ConfigFile = file
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch value := f.Value.String(); {
		case slices.Contains(notForWorker, f.Name):
		case f.Name == "label":
			// Each label has its own flag, because values may contain commas.
			for _, key := range slices.Sorted(maps.Keys(s.worker.labels)) {
				args = append(args, "--label="+key+"="+s.worker.labels[key])
			}
		case f.Name == "check":
			for _, check := range s.worker.checks {
				args = append(args, "--check="+check)
			}
		// The defaults of some come from the environment, which a service does not have.
		case f.Changed || value != "" && slices.Contains([]string{"codec-keys", "api-key-file"}, f.Name):
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	return args, nil
}

// write writes the unit to a directory of systemd.
func (s *installation) write(ctx context.Context, path string, u service.Unit) error {
	if _, err := writtenByUs(path); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := atomicfile.WriteSynced(path, []byte(u.Text()), 0o644); err != nil {
		return err
	}
	s.sayUnknown(u.Environment)
	if s.enable {
		if err := s.systemctl(ctx, "daemon-reload"); err != nil {
			return err
		}
		if err := s.systemctl(ctx, "enable", "--now", "--no-block", s.name+".service"); err != nil {
			return err
		}
	}
	if s.Global.JSON {
		return s.PrintJSON(map[string]any{"path": path, "enabled": s.enable})
	}
	_, err := fmt.Fprint(s.Out, path+"\n")
	switch {
	case err != nil:
	case s.enable:
		s.Say("it is starting, and is ready once it has reached the server; `%s status %s` shows its state", s.called(), s.name)
	default:
		s.Say("written; start it, now and at each boot, with\n  %s daemon-reload && %s enable --now %s", s.called(), s.called(), s.name)
	}
	if s.forUser {
		s.Say("`loginctl enable-linger` keeps it running while you are logged out")
	}
	return err
}

// sayUnknown names the settings of a server that are set in this shell but not for the service.
func (s *installation) sayUnknown(file string) {
	var names []string
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "TEMPORAL_") && value != "" {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		s.Say("the service does not get %s from this shell; put what it needs into %s, which only its user may read, or into flags", strings.Join(names, ", "), file)
	}
}

func (s *installation) remove(ctx context.Context, path string) error {
	there, err := writtenByUs(path)
	if err != nil {
		return err
	}
	if there && !s.dryRun {
		if err := s.systemctl(ctx, "disable", "--now", s.name+".service"); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		if err := s.systemctl(ctx, "daemon-reload"); err != nil {
			return err
		}
	}
	return s.Print(map[string]any{"path": path, "removed": there && !s.dryRun}, func() {
		switch {
		case !there:
			s.Say("there is no %s", path)
		case s.dryRun:
			s.Say("would end the service %s and remove %s", s.name, path)
		default:
			s.Say("removed %s", path)
		}
	})
}

// writtenByUs reports whether the unit exists. It fails if another program wrote it.
func writtenByUs(path string) (bool, error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !bytes.HasPrefix(b, []byte(service.Mark)):
		return true, fmt.Errorf("%s was not written by worker install; give another --name, or remove that yourself", path)
	}
	return true, nil
}

// called returns the systemctl command.
func (s *installation) called() string {
	if s.forUser {
		return "systemctl --user"
	}
	return "systemctl"
}

func (s *installation) systemctl(ctx context.Context, args ...string) error {
	if s.forUser {
		args = append([]string{"--user"}, args...)
	}
	cmd := exec.CommandContext(ctx, "systemctl", args...)
	// The output of systemctl is shown to the user only.
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return nil
}
