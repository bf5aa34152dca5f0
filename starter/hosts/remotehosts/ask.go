package remotehosts

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Ask returns the version line of the clusterrun on a host. program is the path to try first.
func Ask(ctx context.Context, agent []string, login, program string) (version string, err error) {
	argv := commandLine(agent, login, askScript(program))
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	var answer, said tail
	cmd.Stdout, cmd.Stderr = &answer, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("%s %s: no answer in time", agent[0], login)
		}
		if cmd.ProcessState.ExitCode() == notThere {
			return "", errors.New("clusterrun is neither in its PATH nor at the path where it is installed on this machine")
		}
		return "", fmt.Errorf("%s %s: %w: %s", agent[0], login, err, strings.Join(said.lines(), "; "))
	}
	_, version, found := strings.Cut(string(answer.text), answerLine+"\n")
	if !found {
		return "", fmt.Errorf("cannot parse its answer: %.200q", strings.Join(answer.lines(), "; "))
	}
	version, _, _ = strings.Cut(version, "\n") // other text may follow
	return version, nil
}

// answerLine precedes the answer, because login shells may write output before it.
const answerLine = "clusterrun: answer"

func askScript(program string) string {
	return "exec /bin/sh -c " + Quote(fmt.Sprintf(
		`p=%s; [ -x "$p" ] || p=$(command -v clusterrun) || exit %d; echo %s; exec "$p" version`,
		Quote(program), notThere, Quote(answerLine)))
}
