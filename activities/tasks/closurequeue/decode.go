package closurequeue

import (
	commonpb "go.temporal.io/api/common/v1"

	"github.com/clusterrun/clusterrun/activities/trust/codec"
)

func decode(p *commonpb.Payloads, to any) error {
	return codec.Converter.FromPayloads(p, to)
}
