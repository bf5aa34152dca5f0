package hostservice

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/clusterrun/clusterrun/activities/supervisor"
)

// grant is what a token allows: to read the files of a run, or an archive, or to store
// archives.
type grant struct {
	Run supervisor.RunKey `json:"run,omitzero"`
	// Dir is the directory of the run's logs.
	Dir string `json:"dir,omitempty"`
	// Archive is the digest of the archive.
	Archive string `json:"archive,omitempty"`
	Store   bool   `json:"store,omitempty"`
}

// token returns a grant with its signature.
func (i *identity) token(g grant) string {
	b, err := json.Marshal(g)
	if err != nil {
		panic(err) // it has nothing but texts
	}
	return base64.RawURLEncoding.EncodeToString(b) + "." + base64.RawURLEncoding.EncodeToString(i.sign(b))
}

// granted returns what a token allows; false: this host has not made it.
func (i *identity) granted(token string) (g grant, ok bool) {
	text, signature, _ := strings.Cut(token, ".")
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return g, false
	}
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(given, i.sign(b)) {
		return g, false
	}
	return g, json.Unmarshal(b, &g) == nil
}

func (i *identity) sign(b []byte) []byte {
	h := hmac.New(sha256.New, i.tokenKey)
	h.Write(b)
	return h.Sum(nil)
}
