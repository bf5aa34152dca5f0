package devserver

import (
	"fmt"

	uiversion "github.com/temporalio/ui-server/v2/server/version"
	"go.temporal.io/server/common/headers"
)

// versionLine names what this program is made of. A version of its own it has none: it
// comes with clusterrun, whose `clusterrun version` has one.
func versionLine() string {
	return fmt.Sprintf("clusterrun-devserver (Temporal server %s, Web UI %s)", headers.ServerVersion, uiversion.UIVersion)
}
