package hostservice

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// grant is the content of a token. It is the permission to read a run's files, to ask about its
// tasks' leases, to read an archive, or to store archives.
type grant struct {
	Run runkey.Run `json:"run,omitzero"`
	// Dir is the run's log directory.
	Dir string `json:"dir,omitempty"`
	// User contains the IDs of the tasks' user. as is set if that is not our own user.
	User *numbers       `json:"user,omitempty"`
	as   *hostuser.User // set by asUser
	// Archive is the archive's digest.
	Archive string `json:"archive,omitempty"`
	Store   bool   `json:"store,omitempty"`
	// Witness allows the run's other hosts only to ask questions.
	Witness bool `json:"witness,omitempty"`
}

type numbers struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

// numbersOf returns a user's IDs. nil stands for the user of this process.
func numbersOf(u *hostuser.User) *numbers {
	if u == nil {
		return &numbers{uint32(os.Geteuid()), uint32(os.Getegid())}
	}
	return &numbers{u.UID, u.GID}
}

// user returns the user as whom the files are read, according to the token, because the directory's
// owner may have changed. Only root can act as another user. If this process is not root, the
// kernel checks its permissions.
func (g grant) user() (*hostuser.User, error) {
	switch {
	case os.Geteuid() != 0:
		return nil, nil
	case g.User == nil:
		return nil, errors.New("the token does not name the files' owner, and files are never read as root")
	case g.User.UID == 0:
		return nil, nil
	}
	return &hostuser.User{Name: "with the number " + strconv.Itoa(int(g.User.UID)), UID: g.User.UID, GID: g.User.GID}, nil
}

// token returns a token that contains the grant and its signature.
func (i *identity) token(g grant) string {
	b, err := json.Marshal(g)
	if err != nil {
		panic(err) // a grant can always be encoded
	}
	return base64.RawURLEncoding.EncodeToString(b) + "." + base64.RawURLEncoding.EncodeToString(i.sign(b))
}

// granted returns what a token allows; ok is false if this host did not issue the token.
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
