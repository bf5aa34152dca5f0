package sourcecode

import (
	"encoding/json"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// argument is the index of the workflow argument with the state. The workflow's own arguments
// precede it.
const argument = 2

// Arguments returns the arguments that follow the spec when a run starts.
func (s *Source) Arguments() []any {
	if s == nil {
		return nil
	}
	return []any{nil, s}
}

// Of returns the state in a workflow's arguments. It returns nil if there is none, or if it is
// encoded with an unknown key.
func Of(arguments []*commonpb.Payload) *Source {
	if len(arguments) <= argument || string(arguments[argument].GetMetadata()[converter.MetadataEncoding]) != converter.MetadataEncodingJSON {
		return nil
	}
	s := &Source{}
	if json.Unmarshal(arguments[argument].GetData(), s) != nil || s.Dir == "" {
		return nil
	}
	return s
}
