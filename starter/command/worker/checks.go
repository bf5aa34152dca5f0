package worker

import (
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/activities/process/hostcheck"
)

// checksText returns a help line for each built-in check.
func checksText() string {
	var b strings.Builder
	for _, k := range hostcheck.Known {
		name := k.Name
		if k.Limit != "" {
			name += "[:" + k.Limit + "]"
		}
		fmt.Fprintf(&b, "  %-15s  %s", name, k.Words)
		if k.Default != "" {
			fmt.Fprintf(&b, " (%s)", k.Default)
		}
		b.WriteString("\n")
	}
	return b.String()
}
