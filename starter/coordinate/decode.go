package coordinate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/clusterrun/clusterrun/activities/strictjson"
)

// maxEchoed bounds an ID that is no number, in bytes, for its answer to have it.
const maxEchoed = 200

// decode reads a request. A field that does not exist is an error: whoever has written
// "prio" does not find out otherwise that it does nothing.
func decode(line []byte) (Request, error) {
	var r Request
	err := strictjson.Decode(line, &r)
	return r, inWords(err)
}

// inWords is an error of decoding for those who do not write Go.
func inWords(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, strictjson.ErrMore):
		return errors.New("something follows the object; write one request a line")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends too early")
	case errors.As(err, &wrong) && wrong.Field == "id":
		return fmt.Errorf("id must be a number, from 0 up and without a fraction, is %s", wrong.Value)
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("%s has the wrong type: %s", wrong.Field, wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Errorf("it must be an object, is %s", wrong.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// problem is the answer to a line that is no request, with its ID as it is there.
type problem struct {
	ID json.RawMessage `json:"id,omitempty"`
	Answer
}

// idIn is the ID of a line that is no request, so that its answer finds who waits for it;
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
