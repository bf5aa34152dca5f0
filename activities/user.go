package activities

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"go.temporal.io/sdk/temporal"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// userFor returns the user that the policy names; nil for our own.
func (r *reservations) userFor(ctx context.Context, name string) (*hostuser.User, error) {
	if name == "" {
		return nil, nil
	}
	user, err := hostuser.Lookup(ctx, name)
	if err == nil {
		err = r.letThrough(user)
	}
	if err != nil {
		// This is the configuration of the host: a retry would fail as well.
		return nil, temporal.NewNonRetryableApplicationError(fmt.Sprintf("host %s: %v", r.Name, err), spec.ErrPlacement, nil)
	}
	return user, nil
}

// letThrough lets a user reach their files in the state directory: sockets, and what their
// runs ship. Everything else in it is protected by its own mode.
func (r *reservations) letThrough(user *hostuser.User) error {
	if user == nil {
		return nil
	}
	const passable = 0o711
	if err := os.Chmod(r.StateDir, passable); err != nil {
		return err
	}
	return user.Do(func() error {
		for _, dir := range []string{r.StateDir, r.LogRoot} {
			if at := closedAbove(dir); at != "" {
				return fmt.Errorf("the user %s cannot pass through %s to the files of their tasks: start the host worker with another --state-dir, such as /var/lib/clusterrun, or chmod o+x %s", user.Name, at, at)
			}
		}
		return nil
	})
}

// closedAbove returns the first directory on the path that the current user cannot enter;
// empty if there is none.
func closedAbove(dir string) string {
	if parent := filepath.Dir(dir); parent != dir {
		if at := closedAbove(parent); at != "" {
			return at
		}
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() && hostuser.Access(dir, unix.X_OK) != nil {
		return dir
	}
	return ""
}

// userOf returns the user to read and write the files of a process as, according to the
// records: the directory may have another owner by now. p may be nil.
func (p *plan) userOf(q supervisor.Process) (*hostuser.User, error) {
	if p != nil && p.User != nil {
		return p.User, nil
	}
	if q.User != "" {
		return nil, fmt.Errorf("the process ran as the user %s, and there is no longer a record that allows reading its files", q.User)
	}
	return nil, nil
}
