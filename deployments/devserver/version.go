package devserver

import (
	"fmt"

	uiversion "github.com/temporalio/ui-server/v2/server/version"
	"go.temporal.io/server/common/headers"
)

// versionLine names the versions of this program's parts. The program itself is not versioned: it
// comes with clusterrun, and `clusterrun version` prints that version.
func versionLine() string {
	return fmt.Sprintf("clusterrun-devserver (Temporal server %s, Web UI %s)", headers.ServerVersion, uiversion.UIVersion)
}
