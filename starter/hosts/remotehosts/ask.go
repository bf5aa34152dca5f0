package remotehosts

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Ask returns the version line of the clusterrun on a host, and how far its clock is ahead of
// this host's, to within doubt. program is the path that is tried first.
func Ask(ctx context.Context, agent []string, login, program string) (version string, ahead, doubt time.Duration, err error) {
	argv := commandLine(agent, login, askScript(program))
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	var answer, said tail
	cmd.Stdout, cmd.Stderr = &answer, &said
	began := time.Now()
	err = cmd.Run()
	ended := time.Now()
	if err != nil {
		if ctx.Err() != nil {
			return "", 0, 0, fmt.Errorf("%s %s: no answer in time", agent[0], login)
		}
		if cmd.ProcessState.ExitCode() == notThere {
			return "", 0, 0, errors.New("no clusterrun in its PATH, nor at the path it has here")
		}
		return "", 0, 0, fmt.Errorf("%s %s: %w: %s", agent[0], login, err, strings.Join(said.lines(), "; "))
	}
	version, at, err := readAnswer(string(answer.text))
	// The host read its clock between these two times.
	middle := began.Add(ended.Sub(began) / 2)
	return version, at.Sub(middle), ended.Sub(began)/2 + time.Second, err
}

// answerLine precedes the answer, because login shells may write output before it.
const answerLine = "clusterrun: answer"

func askScript(program string) string {
	return "exec /bin/sh -c " + Quote(fmt.Sprintf(
		`p=%s; [ -x "$p" ] || p=$(command -v clusterrun) || exit %d; echo %s; date +%%s; exec "$p" version`,
		Quote(program), notThere, Quote(answerLine)))
}

// readAnswer reads the output of the script: the time in seconds, and the version line.
func readAnswer(text string) (version string, at time.Time, err error) {
	_, answer, _ := strings.Cut(text, answerLine+"\n")
	second, version, _ := strings.Cut(answer, "\n")
	n, err := strconv.ParseInt(second, 10, 64)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("its answer is not understood: %w", err)
	}
	return strings.TrimSpace(version), time.Unix(n, 0), nil
}
