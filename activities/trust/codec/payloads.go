package codec

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Encode encodes each payload with the newest key.
func (k *Keys) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	set := k.current()
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, err
		}
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(spec.PayloadEncoding), spec.PayloadKey: []byte(set.newest)},
			Data:     set.byID[set.newest].Seal(nil, nil, plain, nil),
		}
	}
	return out, nil
}

// Decode decodes payloads with known keys, and leaves the rest unchanged.
func (k *Keys) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	set := k.current()
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		out[i] = p
		missing := spec.MissingKey(p.GetMetadata())
		if missing == nil {
			continue
		}
		key := set.byID[missing.ID]
		if key == nil {
			continue
		}
		plain, err := key.Open(nil, nil, p.GetData(), nil)
		if err != nil {
			continue
		}
		decoded := new(commonpb.Payload)
		if err := proto.Unmarshal(plain, decoded); err != nil {
			return nil, fmt.Errorf("decode a payload: %w", err)
		}
		out[i] = decoded
	}
	return out, nil
}
