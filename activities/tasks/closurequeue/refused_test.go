package closurequeue

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A request that a queue refuses is never repeated, whether it is a mistake or cannot be met
// now.
func TestWhatIsRefusedIsFinal(t *testing.T) {
	for _, kind := range []string{spec.ErrRefused, spec.ErrInvalidRequest} {
		err := (&Client{}).final(t.Context(), temporal.NewNonRetryableApplicationError("no", kind, nil))
		var refused *closure.RefusedError
		require.ErrorAs(t, err, &refused, kind)
		require.Equal(t, "no", refused.Error())
	}
	require.NoError(t, (&Client{}).final(t.Context(), temporal.NewApplicationError("later", spec.ErrTryAgain)))
}
