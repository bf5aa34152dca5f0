package spec

import "fmt"

// What the metadata of a payload names if it is encoded; see package codec.
const (
	// PayloadEncoding is the encoding.
	PayloadEncoding = "binary/encrypted"
	// PayloadKey is the field with the ID of the key.
	PayloadKey = "encryption-key-id"
)

// MissingKeyError reports that a payload cannot be read without a key.
type MissingKeyError struct{ ID string }

func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("it is encoded with the key %q, which is missing or has another value here: name the file with that key with --codec-keys or CLUSTERRUN_CODEC_KEYS", e.ID)
}

// MissingKey returns an error if a payload with that metadata is still encoded.
func MissingKey(metadata map[string][]byte) *MissingKeyError {
	if string(metadata["encoding"]) != PayloadEncoding {
		return nil
	}
	return &MissingKeyError{ID: string(metadata[PayloadKey])}
}
