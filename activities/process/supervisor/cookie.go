package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// CookieVar is the environment variable that identifies a process's task even if the process has
// left its session and its parents have exited.
const CookieVar = "CLUSTERRUN_COOKIE"

// runHash identifies a run in file names and cookies.
func runHash(k runkey.Run) string {
	sum := sha256.Sum256([]byte(k.Namespace + "\x00" + k.WorkflowID + "\x00" + k.RunID))
	return hex.EncodeToString(sum[:8])
}

// isRunHash reports whether text can be a [runHash].
func isRunHash(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == 8
}

// cookieOf returns <instance>/<run>/<generation>/<task>/<number>.
func cookieOf(instance, hash string, key runkey.Task, number int) string {
	return instance + "/" + hash + "/" + strconv.Itoa(key.Generation) + "/" + key.Task + "/" + strconv.Itoa(number)
}

// sideCookie marks what the side starts for itself, such as a server that must outlive the run.
// Such a process descends from the supervisor, but is not part of any task.
func sideCookie(instance string) string { return instance + "/side" }

// OwnSideCookie returns, as NAME=VALUE, the cookie that marks what this side starts for itself, or
// "" if this process is not a side.
func OwnSideCookie() string {
	for _, cookie := range strings.Fields(os.Getenv(CookieVar)) {
		if instance, ok := strings.CutSuffix(cookie, "/side"); ok && !strings.Contains(instance, "/") {
			return CookieVar + "=" + cookie
		}
	}
	return ""
}

// withCookie replaces the cookie in an environment. If the supervisor itself belongs to an outer
// supervisor's task, the outer cookie is appended, so that the outer supervisor also finds the
// inner one's processes.
func withCookie(env []string, cookie, outer string) []string {
	out := make([]string, 0, len(env)+1)
	for _, kv := range env {
		if !strings.HasPrefix(kv, CookieVar+"=") {
			out = append(out, kv)
		}
	}
	if outer != "" {
		cookie += " " + outer
	}
	return append(out, CookieVar+"="+cookie)
}

// readCookies returns a process's cookies. There are none if the process never had any, cleared its
// environment, or belongs to another user.
func readCookies(pid int) []string {
	return strings.Fields(proc.Variable(pid, CookieVar))
}

// InTask reports whether this process belongs to a task, and is therefore killed with it. It need
// not have the task's environment.
func InTask() bool {
	if _, ofTask := cgroup.Place(); ofTask {
		return true
	}
	for pid := os.Getpid(); pid > 1; {
		if slices.ContainsFunc(readCookies(pid), isOfTask) {
			return true
		}
		stat, err := proc.ReadStat(pid)
		if err != nil {
			return false
		}
		pid = stat.PPID
	}
	return false
}

func isOfTask(cookie string) bool { return !strings.HasSuffix(cookie, "/side") }

// EndsWith returns, as a phrase, with what this process may be killed, or "" if it is independent.
func EndsWith() string {
	if InTask() {
		return "the task that started it"
	}
	if path, _ := cgroup.Place(); path != "" {
		return "the cgroup " + path + ", if it is killed as a whole, like the cgroups of services and job steps"
	}
	return ""
}

// ofInstance returns the cookie that the given instance assigned, if there is one. The side's
// cookie also counts.
func ofInstance(cookies []string, instance string) string {
	for _, c := range cookies {
		if strings.HasPrefix(c, instance+"/") {
			return c
		}
	}
	return ""
}
