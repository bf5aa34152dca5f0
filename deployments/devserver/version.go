package devserver

import (
	"fmt"

	uiversion "github.com/temporalio/ui-server/v2/server/version"
	"go.temporal.io/server/common/headers"
)

// versionLine names the versions of the parts of this program. It has no version of its own: it
// comes with clusterrun, and `clusterrun version` prints that.
func versionLine() string {
	return fmt.Sprintf("clusterrun-devserver (Temporal server %s, Web UI %s)", headers.ServerVersion, uiversion.UIVersion)
}
