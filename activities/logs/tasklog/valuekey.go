package tasklog

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
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
		err = atomicfile.WriteNew(path, func(w io.Writer) error {
			key := make([]byte, sha256.Size)
			_, _ = rand.Read(key) // never fails
			_, err := w.Write(key)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrExist) { // another process may be faster
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
