package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TakeOverArgs are the arguments with which a program calls [CheckTakeOver].
var TakeOverArgs = []string{"take-over", "--check"}

// inheritedOptions returns the options from the environment. It refuses unknown ones.
func inheritedOptions() (o Options, err error) {
	text, ok := os.LookupEnv(optionsVar)
	if !ok {
		return o, fmt.Errorf("this command is started by a clusterrun supervisor, not by hand: %s is not set", optionsVar)
	}
	// Processes of tasks must not inherit it.
	if err := os.Unsetenv(optionsVar); err != nil {
		return o, err
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, fmt.Errorf("the options of the host worker are not understood: %w", err)
	}
	return o, nil
}

// CheckTakeOver reports to a supervisor whether this program can be its side.
func CheckTakeOver(out io.Writer) error {
	return supervisor.Answer(spec.Version, func() error {
		o, err := inheritedOptions()
		if err != nil {
			return err
		}
		return activities.UnderstandsPlans(o.StateDir)
	}, out)
}

// TakeOver becomes the supervisor in the process of an idle one that executed this program. It
// calls begin with the options of that supervisor.
func TakeOver(ctx context.Context, command []string, program string, begin func(context.Context, Options)) error {
	o, err := inheritedOptions()
	if err != nil {
		return err
	}
	begin(ctx, o)
	return Supervise(ctx, o, command, Owner{Program: program})
}

// hasTerminal reports whether this process has a controlling terminal.
func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}
