// Package workercomponent adds nothing to the workers of Temporal's server.
package workercomponent

import "go.uber.org/fx"

// Module is empty.
var Module = fx.Options()
