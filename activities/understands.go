package activities

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// understands returns an error if this host does not understand a request. The spec was valid when
// the run was started, so a problem here means that another version reads the spec differently, or
// that the request was written into the namespace without a workflow's checks. Another host may
// understand the request, and so may this host once its worker is upgraded.
func (r *reservations) understands(in hostapi.ReserveInput) error {
	why := in.Unknown
	if why == "" && in.Spec == nil {
		why = "there is no spec"
	}
	if why == "" {
		// A generation of an elastic run may have fewer tasks than the run's settings assume.
		err := in.Spec.Whole(len(in.Tasks)).Validate()
		if err == nil {
			return nil
		}
		why = err.Error()
	}
	return temporal.NewApplicationErrorWithOptions(
		fmt.Sprintf("host %s has clusterrun %s, which does not support the run's spec (%s); upgrade it on that host", r.Name, spec.Version, why),
		spec.ErrPlacement, temporal.ApplicationErrorOptions{NonRetryable: true})
}

// UnderstandsPlans returns an error if this program cannot serve the runs of the host worker with
// the given state directory, because a newer version has recorded fields unknown to this version.
func UnderstandsPlans(stateDir string) error {
	return eachPlan(stateDir, func(text []byte) error {
		var p plan
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&p); err != nil && json.Unmarshal(text, &p) == nil && !p.Released {
			return fmt.Errorf("cannot decode the stored description of run %s: %s", p.Run.WorkflowID, strings.TrimPrefix(err.Error(), "json: "))
		}
		return nil
	})
}
