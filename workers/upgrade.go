package workers

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Arguments that make a program call [Side] or [CheckSide].
var (
	sideArgs  = []string{"side"}
	checkArgs = []string{"side", "--check"}
)

// Service returns a host worker that is a service or serves in the background. Its side is upgraded
// to a program on request.
func Service(program string) *supervise.Service {
	return &supervise.Service{Program: program, Check: checkArgs, Version: spec.Version}
}

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
