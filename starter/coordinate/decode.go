package coordinate

import "encoding/json"

// maxEchoed bounds an ID that is no number, in bytes, for its answer to have it.
const maxEchoed = 200

// problem is the answer to a line that is no request, with its ID as it is there.
type problem struct {
	ID json.RawMessage `json:"id,omitempty"`
	Answer
}

// idIn returns the ID of a line that is no request, so that its answer finds who waits for it;
// none where it is neither a number nor a text, or is long.
func idIn(line []byte) json.RawMessage {
	var r struct {
		ID json.RawMessage `json:"id"`
	}
	// The error is that of the line, which is told.
	if json.Unmarshal(line, &r) != nil || len(r.ID) == 0 || len(r.ID) > maxEchoed || string(r.ID) == "0" {
		return nil
	}
	if first := r.ID[0]; first == '"' || first == '-' || '0' <= first && first <= '9' {
		return r.ID
	}
	return nil
}
