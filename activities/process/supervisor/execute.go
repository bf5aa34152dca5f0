package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
)

// replacedVar is set for a program that is executed instead of a supervisor.
const replacedVar = "CLUSTERRUN_REPLACES"

// replaced is its value: what a supervisor without runs leaves to the next program. Everything
// else is read from the state directory, as after any other end.
type replaced struct {
	Lock  int    `json:"lock"` // descriptor of the lock of the state directory
	Path  string `json:"path"` // see [Upgrade]
	Tries int    `json:"tries"`
}

// predecessor is the state that a supervisor left to this program. It is nil if the program was
// started rather than executed.
var predecessor *replaced

func init() {
	text, ok := os.LookupEnv(replacedVar)
	if !ok {
		return
	}
	_ = os.Unsetenv(replacedVar)
	r := new(replaced)
	if json.Unmarshal([]byte(text), r) != nil {
		return
	}
	unix.CloseOnExec(r.Lock)
	predecessor = r
	// Restore the name: the kernel has named the process after the descriptor.
	_ = os.WriteFile("/proc/self/comm", []byte(filepath.Base(os.Args[0])), 0)
}

// Replaces returns the file of this program if it was executed instead of a supervisor.
func Replaces() (path string, ok bool) {
	if predecessor == nil {
		return "", false
	}
	return predecessor.Path, true
}

// Execute executes the program that [Run] has returned [ErrReplaced] for, in this process, with
// the state directory still locked. It returns only if that fails. signals are those that ask for
// an upgrade. They and the signals of [RequestUpgrade] and [RequestEnd] are ignored until the
// program listens for them; who has sent one asks again, or gets this upgrade for an answer.
func (s *State) Execute(c *Config, signals []os.Signal) error {
	lock := int(s.lock.Fd()) //nolint:gosec // a descriptor
	text, err := json.Marshal(replaced{Lock: lock, Path: c.Upgrade.Path, Tries: s.tries + 1})
	if err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(lock), unix.F_SETFD, 0); err != nil { //nolint:gosec // a descriptor
		return fmt.Errorf("keeping the state directory locked: %s", fault.Reason(err))
	}
	signal.Ignore(slices.Concat(c.Ignored, signals, []os.Signal{SignalEnd, SignalUpgrade})...)
	env := lastOfEach(slices.Concat(os.Environ(), c.SideEnv, []string{replacedVar + "=" + string(text)}))
	err = syscall.Exec(s.next.path(), os.Args, env)
	return fmt.Errorf("executing %s: %s", c.Upgrade.Path, fault.Reason(err))
}
