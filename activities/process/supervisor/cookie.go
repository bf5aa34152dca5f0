package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// CookieVar is the environment variable that identifies the task of a process. It finds
// processes that have left their session and parents.
const CookieVar = "CLUSTERRUN_COOKIE"

// runHash names a run in file names and cookies.
func runHash(k runkey.Run) string {
	sum := sha256.Sum256([]byte(k.Namespace + "\x00" + k.WorkflowID + "\x00" + k.RunID))
	return hex.EncodeToString(sum[:8])
}

// cookieOf returns <instance>/<run>/<generation>/<task>/<number>.
func cookieOf(instance, hash string, key runkey.Task, number int) string {
	return instance + "/" + hash + "/" + strconv.Itoa(key.Generation) + "/" + key.Task + "/" + strconv.Itoa(number)
}

// sideCookie marks what the side starts for itself, such as a server that must outlive the
// run: a descendant of the supervisor, but not part of any task.
func sideCookie(instance string) string { return instance + "/side" }

// OwnSideCookie returns, as NAME=VALUE, the cookie that marks what this side starts for itself;
// "" if this process is not a side.
func OwnSideCookie() string {
	for _, cookie := range strings.Fields(os.Getenv(CookieVar)) {
		if instance, ok := strings.CutSuffix(cookie, "/side"); ok && !strings.Contains(instance, "/") {
			return CookieVar + "=" + cookie
		}
	}
	return ""
}

// withCookie replaces the cookie in an environment. If the supervisor itself belongs to a task
// of an outer supervisor, the outer cookie is appended, so that the outer supervisor finds the
// inner one's processes too.
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

// readCookies returns the cookies of a process: none if it never had any, cleared its
// environment, or belongs to another user.
func readCookies(pid int) []string {
	return strings.Fields(proc.Variable(pid, CookieVar))
}

// ofInstance returns the cookie that an instance gave, if there is one. The cookie of the side
// counts too.
func ofInstance(cookies []string, instance string) string {
	for _, c := range cookies {
		if strings.HasPrefix(c, instance+"/") {
			return c
		}
	}
	return ""
}
