package taskenv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Secret returns this host's value for a variable, if the policy allows it. base is the host
// worker's environment. The problem explains why there is no value, and never contains the value.
func Secret(base []string, from spec.Source, allowed policy.Secrets) (string, *spec.Problem) {
	if from.FromFile != "" {
		value, err := secretFile(from.FromFile, allowed)
		if errors.Is(err, errNotLent) {
			return "", &spec.Problem{Path: "from_file", Message: fmt.Sprintf("%s: %s", from.FromFile, err), Remedy: "ask the host's owner to add it to secrets.files in a rule, or name another file"}
		}
		if err != nil {
			return "", &spec.Problem{
				Path: "from_file", Message: fmt.Sprintf("%s: %s", from.FromFile, err),
				Remedy: "make it a file that the host worker can read and that contains only the value",
			}
		}
		return value, nil
	}
	name := from.FromEnv
	if isOwn(name) {
		// The host worker uses these variables to reach the server. Tasks must not get them.
		return "", &spec.Problem{Path: "from_env", Message: name + " belongs to the host worker and is never passed to tasks", Remedy: "name another variable, or a file"}
	}
	if !allowed.AllowsEnv(name) {
		return "", &spec.Problem{Path: "from_env", Message: name + ": " + errNotLent.Error(), Remedy: "ask the host's owner to add it to secrets.env in a rule, or name another variable"}
	}
	value, ok := fromList(base)[name]
	if !ok {
		return "", &spec.Problem{Path: "from_env", Message: "the host worker's environment does not contain " + name, Remedy: "start the host worker with it, or name another variable or a file"}
	}
	return value, nil
}

var errNotLent = errors.New("the host's policy does not give it to this run")

// secretFile reads a value from a file, without a final newline.
func secretFile(path string, allowed policy.Secrets) (string, error) {
	if !allowed.AllowsFile(filepath.Clean(path)) {
		return "", errNotLent
	}
	// O_NONBLOCK, because opening a pipe would block.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", reasonOf(err)
	}
	defer f.Close()
	// A link may lead anywhere. The descriptor shows where it led.
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	switch {
	case err != nil:
		return "", reasonOf(err)
	case !allowed.AllowsFile(real):
		return "", errNotLent
	}
	info, err := f.Stat()
	if err != nil {
		return "", reasonOf(err)
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxVariable))
	switch value := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"); {
	case err != nil:
		return "", reasonOf(err)
	case len(b) == maxVariable:
		return "", fmt.Errorf("it has %d bytes or more, which is too long for a variable", maxVariable)
	case strings.ContainsRune(value, 0):
		return "", errors.New("it contains a NUL byte, which variables cannot contain")
	case value == "":
		return "", errors.New("it is empty")
	default:
		return value, nil
	}
}

// reasonOf returns an error without the path in it.
func reasonOf(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}
