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

// ValueKey makes digests of values that are kept nowhere, by which it can be told whether two
// are the same. Without the key a value cannot be found by trying short ones.
type ValueKey []byte

const (
	// valueKeyFile has the key of a state directory.
	valueKeyFile = "values.key"
	// digestSize is how many bytes of a digest are kept.
	digestSize = 16
)

// OpenValueKey reads the key of a state directory, or makes it.
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
		err = fmt.Errorf("%s is damaged; remove it to have a new one made", path)
	}
	if err != nil {
		return nil, err
	}
	return key, nil
}

// makeValueKey writes a key unless somebody else is first.
func makeValueKey(stateDir, path string) error {
	f, err := os.CreateTemp(stateDir, "."+valueKeyFile+"-*") // for its user alone
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	_, err = f.Write(key)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// digest returns what stands for the value of a variable.
func (k ValueKey) digest(name, value string) string {
	h := hmac.New(sha256.New, k)
	h.Write([]byte(name + "=" + value))
	return hex.EncodeToString(h.Sum(nil)[:digestSize])
}

// name tells a key from others; empty: there is none.
func (k ValueKey) name() string {
	if len(k) == 0 {
		return ""
	}
	return k.digest("", "")
}
