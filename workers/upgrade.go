package workers

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// checkArgs are the arguments with which a program calls [CheckSide].
var checkArgs = []string{"side", "--check"}

// CheckSide reports to a supervisor whether this program can be its side.
func CheckSide(out io.Writer) error {
	return supervisor.Answer(spec.Version, func() error {
		var o Options
		d := json.NewDecoder(strings.NewReader(os.Getenv(optionsVar)))
		d.DisallowUnknownFields()
		if err := d.Decode(&o); err != nil {
			return fmt.Errorf("the options of the host worker are not understood: %w", err)
		}
		return activities.UnderstandsPlans(o.StateDir)
	}, out)
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
