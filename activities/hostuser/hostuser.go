package hostuser

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// User is a user of the host. A nil User is the one that this process runs as.
type User struct {
	Name   string   `json:"name"`
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"` // the supplementary ones
	Home   string   `json:"home"`
	Shell  string   `json:"shell"`
}

// root are the names by which somebody means root.
var root = map[string]bool{"root": true, "0": true}

// Lookup returns the user with a name or number; nil if that is who this process runs as.
// Only root can be another one, and nobody else is found who has root's number.
func Lookup(name string) (*User, error) {
	entry, err := ask("getent", "passwd", "--", name)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == notFound {
		return nil, fmt.Errorf("this host has no user %q", name)
	} else if err != nil {
		return nil, fmt.Errorf("look up the user %q: %w", name, err)
	}
	u, err := parse(entry)
	if err != nil {
		return nil, fmt.Errorf("look up the user %q: %w", name, err)
	}
	switch me := os.Geteuid(); {
	case u.UID == 0 && !root[name]:
		return nil, fmt.Errorf("the user %s has the number of root, who has to be named to be meant", name)
	case int(u.UID) == me:
		return nil, nil
	case me != 0:
		return nil, fmt.Errorf("this host worker does not run as root, and cannot run anything as the user %s", u.Name)
	}
	groups, err := ask("id", "-G", "--", u.Name)
	if err != nil {
		return nil, fmt.Errorf("look up the groups of the user %s: %w", u.Name, err)
	}
	for field := range strings.FieldsSeq(groups) {
		gid, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("look up the groups of the user %s: %w", u.Name, err)
		}
		u.Groups = append(u.Groups, uint32(gid))
	}
	return u, nil
}

// notFound is the exit code of getent for what there is not.
const notFound = 2

// Group returns the number of a group, given that or its name.
func Group(name string) (uint32, error) {
	entry, err := ask("getent", "group", "--", name)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == notFound {
		return 0, fmt.Errorf("this host has no group %q", name)
	} else if err != nil {
		return 0, fmt.Errorf("look up the group %q: %w", name, err)
	}
	fields := strings.Split(entry, ":")
	if len(fields) < 3 {
		return 0, fmt.Errorf("look up the group %q: %q is no entry of group(5)", name, entry)
	}
	gid, err := strconv.ParseUint(fields[2], 10, 32)
	return uint32(gid), err
}

// ask returns the first line that a program says.
func ask(program string, args ...string) (string, error) {
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		return "", err
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	return string(line), nil
}

// parse reads an entry of passwd(5).
func parse(entry string) (*User, error) {
	f := strings.Split(entry, ":")
	if len(f) != 7 {
		return nil, fmt.Errorf("%q is no entry of passwd(5)", entry)
	}
	uid, err := strconv.ParseUint(f[2], 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(f[3], 10, 32)
	if err != nil {
		return nil, err
	}
	u := &User{Name: f[0], UID: uint32(uid), GID: uint32(gid), Home: f[5], Shell: f[6]}
	if u.Home == "" {
		u.Home = "/"
	}
	if u.Shell == "" {
		u.Shell = "/bin/sh"
	}
	return u, nil
}

// OwnerOf returns the user whose directory that is, without names and further groups; nil
// if this process cannot be or is that user, or there is no such directory.
func OwnerOf(dir string) *User {
	if os.Geteuid() != 0 {
		return nil
	}
	var stat syscall.Stat_t
	if err := syscall.Lstat(dir, &stat); err != nil || stat.Uid == 0 {
		return nil
	}
	return &User{UID: stat.Uid, GID: stat.Gid}
}

// Credential is for the processes of the user.
func (u *User) Credential() *syscall.Credential {
	if u == nil {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
}
