package closurequeue

import (
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

func decode(p *commonpb.Payloads, to any) error {
	return converter.GetDefaultDataConverter().FromPayloads(p, to)
}
