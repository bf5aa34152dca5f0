package tasklog

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ValueKey makes digests of values that are not stored, by which equal values can be
// recognised. Without the key a short value cannot be found by trial.
type ValueKey []byte

const (
	// valueKeyFile has the key of a state directory.
	valueKeyFile = "values.key"
	// digestSize is the number of bytes of a digest that are kept.
	digestSize = 16
)

// OpenValueKey reads the key of a state directory, or creates it.
func OpenValueKey(stateDir string) (ValueKey, error) {
	path := filepath.Join(stateDir, valueKeyFile)
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeValueKey(stateDir, path); err != nil {
			return nil, err
		}
		key, err = os.ReadFile(path)
	}
	if err == nil && len(key) != sha256.Size {
		err = fmt.Errorf("%s is damaged; remove it, and a new one is created", path)
	}
	if err != nil {
		return nil, err
	}
	return key, nil
}

// makeValueKey writes a key unless another process is faster.
func makeValueKey(stateDir, path string) error {
	f, err := os.CreateTemp(stateDir, "."+valueKeyFile+"-*") // readable by its user only
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	_, err = f.Write(key)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// digest returns the digest of the value of a variable.
func (k ValueKey) digest(name, value string) string {
	h := hmac.New(sha256.New, k)
	h.Write([]byte(name + "=" + value))
	return hex.EncodeToString(h.Sum(nil)[:digestSize])
}

// name returns a name of the key, or empty if there is no key.
func (k ValueKey) name() string {
	if len(k) == 0 {
		return ""
	}
	return k.digest("", "")
}
