package codec

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// keySize is the size of an AES-256 key, in bytes.
const keySize = 32

// maxFile limits the key file, in bytes.
const maxFile = 1 << 20

// Keys holds the keys in a file. The last one is used to encode, and all of them to decode.
type Keys struct {
	file string

	mu   sync.Mutex
	read version
	set  keySet
}

// keySet is a key file's content.
type keySet struct {
	byID   map[string]cipher.AEAD
	newest string
}

// version is used to detect whether a file has changed.
type version struct {
	modified time.Time
	size     int64
}

// Open reads a file's keys.
func Open(file string) (*Keys, error) {
	k := &Keys{file: file}
	if err := k.load(); err != nil {
		return nil, fmt.Errorf("--codec-keys: %w", err)
	}
	return k, nil
}

// load reads the file. k.mu must be held unless k is not yet shared.
func (k *Keys) load() error {
	f, err := os.Open(k.file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", k.file)
	case !isOurs(info):
		return fmt.Errorf("%s belongs to another user, who therefore knows the keys: use your own file", k.file)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("other users can read %s (mode %04o); run chmod 600 on it, and use a new key if someone did", k.file, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return err
	}
	set, err := parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", k.file, err)
	}
	k.set, k.read = set, versionOf(info)
	return nil
}

// isOurs reports whether a file belongs to this user, or to root.
func isOurs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

func versionOf(info os.FileInfo) version { return version{info.ModTime(), info.Size()} }

func parse(text []byte) (keySet, error) {
	set := keySet{byID: map[string]cipher.AEAD{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 {
			return set, fmt.Errorf("line %d has %d words: write an ID and a key, as in `echo \"2026-11 $(openssl rand -base64 32)\"`", n, len(words))
		}
		id := words[0]
		key, err := base64.StdEncoding.DecodeString(words[1])
		if err != nil {
			return set, fmt.Errorf("line %d: the key %q is not in base64", n, id)
		}
		if len(key) != keySize {
			return set, fmt.Errorf("line %d: the key %q has %d bytes, but needs %d, as from `openssl rand -base64 32`", n, id, len(key), keySize)
		}
		if set.byID[id] != nil {
			return set, fmt.Errorf("line %d: key %q appears twice; give each key its own ID", n, id)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return set, err
		}
		if set.byID[id], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return set, err
		}
		set.newest = id
	}
	if err := lines.Err(); err != nil {
		return set, err
	}
	if set.newest == "" {
		return set, fmt.Errorf("it contains no key; write an ID and a key, as in `echo \"2026-11 $(openssl rand -base64 32)\"`")
	}
	return set, nil
}

// current returns the keys in the file. If it cannot be read, perhaps because it is being written,
// current returns the previous keys.
func (k *Keys) current() keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	if info, err := os.Stat(k.file); err == nil && versionOf(info) != k.read {
		_ = k.load()
	}
	return k.set
}
