package codec

import (
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Converter is the SDK's default converter, but its errors name the key of a payload that is still
// encoded.
var Converter = converter.NewCompositeDataConverter(
	converter.NewNilPayloadConverter(),
	converter.NewByteSlicePayloadConverter(),
	converter.NewProtoJSONPayloadConverter(),
	converter.NewProtoPayloadConverter(),
	converter.NewJSONPayloadConverter(),
	encoded{},
)

// encoded converts payloads that could not be decoded.
type encoded struct{}

func (encoded) Encoding() string                             { return spec.PayloadEncoding }
func (encoded) ToPayload(any) (*commonpb.Payload, error)     { return nil, nil }
func (encoded) FromPayload(p *commonpb.Payload, _ any) error { return spec.MissingKey(p.GetMetadata()) }
func (encoded) ToString(p *commonpb.Payload) string          { return spec.MissingKey(p.GetMetadata()).Error() }

// ErrMissingKey is the failure type for input that is still encoded.
const ErrMissingKey = "MissingKey"

// Failures is the SDK's default failure converter with two changes: a failure caused by a
// missing key is not retried, and a failure that is still encoded names its key.
var Failures converter.FailureConverter = failures{temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: Converter})}

type failures struct{ converter.FailureConverter }

func (f failures) ErrorToFailure(err error) *failurepb.Failure {
	if _, ok := errors.AsType[*spec.MissingKeyError](err); ok {
		err = temporal.NewNonRetryableApplicationError(err.Error(), ErrMissingKey, nil)
	}
	return f.FailureConverter.ErrorToFailure(err)
}

func (f failures) FailureToError(failure *failurepb.Failure) error {
	for at := failure; at != nil; at = at.GetCause() {
		if key := spec.MissingKey(at.GetEncodedAttributes().GetMetadata()); key != nil {
			at.Message = key.Error()
		}
	}
	return f.FailureConverter.FailureToError(failure)
}
