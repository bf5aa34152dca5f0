package codec

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

const (
	// encoding is the encoding that the metadata of an encoded payload names.
	encoding = "binary/encrypted"
	// keyID is the metadata field with the ID of the key.
	keyID = "encryption-key-id"
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
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding), keyID: []byte(set.newest)},
			Data:     set.byID[set.newest].Seal(nil, nil, plain, nil),
		}
	}
	return out, nil
}

// Decode decodes each payload whose key it has, and leaves others unchanged.
func (k *Keys) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	set := k.current()
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		out[i] = p
		if !isEncoded(p) {
			continue
		}
		key := set.byID[string(p.GetMetadata()[keyID])]
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

func isEncoded(p *commonpb.Payload) bool {
	return string(p.GetMetadata()[converter.MetadataEncoding]) == encoding
}

// MissingKeyError reports that a payload cannot be read without a key.
type MissingKeyError struct{ ID string }

func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("it is encoded with the key %q, which is missing or has another value here: name the file with that key with --codec-keys or CLUSTERRUN_CODEC_KEYS", e.ID)
}

// Missing returns an error if a payload is still encoded.
func Missing(p *commonpb.Payload) *MissingKeyError {
	if !isEncoded(p) {
		return nil
	}
	return &MissingKeyError{ID: string(p.GetMetadata()[keyID])}
}
