package starter

import (
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// RegisterAttributes returns the command that registers clusterrun's search attributes with a
// server that lacks them.
func RegisterAttributes() string {
	var b strings.Builder
	b.WriteString("temporal operator search-attribute create")
	for _, a := range spec.Attributes() {
		fmt.Fprintf(&b, " --name %s --type %s", a.Name, a.Type)
	}
	return b.String()
}
