package hostuser

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// User is a user of the host. A nil User is the user of this process.
type User struct {
	Name   string   `json:"name"`
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"` // the supplementary ones
	Home   string   `json:"home"`
	Shell  string   `json:"shell"`
}

// root contains the names that explicitly mean root.
var root = map[string]bool{"root": true, "0": true}

// find returns a user's entry.
func find(ctx context.Context, name string) (string, error) {
	entry, err := ask(ctx, "getent", "passwd", "--", name)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == notFound {
		return "", fmt.Errorf("this host has no user %q", name)
	} else if err != nil {
		return "", fmt.Errorf("look up the user %q: %w", name, err)
	}
	return entry, nil
}

// Lookup returns the user with the given name or number, or nil if that is the user of this
// process. Only root can act as another user. A user who has root's number but is not named root is
// refused.
func Lookup(ctx context.Context, name string) (*User, error) {
	entry, err := find(ctx, name)
	if err != nil {
		return nil, err
	}
	u, err := parse(entry)
	if err != nil {
		return nil, fmt.Errorf("look up the user %q: %w", name, err)
	}
	switch me := os.Geteuid(); {
	case u.UID == 0 && !root[name]:
		return nil, fmt.Errorf("the user %s has root's ID; to use root, name root", name)
	case int(u.UID) == me:
		return nil, nil
	case me != 0:
		return nil, fmt.Errorf("this host worker does not run as root, so it cannot run anything as the user %s", u.Name)
	}
	groups, err := ask(ctx, "id", "-G", "--", u.Name)
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

// Home returns the home directory of this process's user, regardless of HOME, or an empty string if
// the user is unknown.
func Home(ctx context.Context) string {
	id := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(id); err == nil {
		return u.HomeDir
	}
	// The user may be in a source other than the password file, and getent may be missing.
	entry, err := find(ctx, id)
	if err != nil {
		return ""
	}
	u, err := parse(entry)
	if err != nil {
		return ""
	}
	return u.Home
}

// notFound is the exit code of getent if an entry does not exist.
const notFound = 2

// Group returns the number of a group, given its name or number.
func Group(ctx context.Context, name string) (uint32, error) {
	entry, err := ask(ctx, "getent", "group", "--", name)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == notFound {
		return 0, fmt.Errorf("this host has no group %q", name)
	} else if err != nil {
		return 0, fmt.Errorf("look up the group %q: %w", name, err)
	}
	fields := strings.Split(entry, ":")
	if len(fields) < 3 {
		return 0, fmt.Errorf("look up the group %q: %q is not an entry of group(5)", name, entry)
	}
	gid, err := strconv.ParseUint(fields[2], 10, 32)
	return uint32(gid), err
}

// askTakes limits the wait for getent and id, which may query a directory service.
const askTakes = 10 * time.Second

// ask returns the first line of a program's output.
func ask(ctx context.Context, program string, args ...string) (string, error) {
	return askWithin(ctx, askTakes, program, args...)
}

func askWithin(ctx context.Context, bound time.Duration, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second // in case it has started other programs
	out, err := cmd.Output()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("%s has not answered in time; check the services that nsswitch.conf lists, such as sssd or ldap", program)
	}
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
		return nil, fmt.Errorf("%q is not an entry of passwd(5)", entry)
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
	u.Home = cmp.Or(u.Home, "/")
	u.Shell = cmp.Or(u.Shell, "/bin/sh")
	return u, nil
}

// Credential returns the credential for the user's processes.
func (u *User) Credential() *syscall.Credential {
	if u == nil {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
}
