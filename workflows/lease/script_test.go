package lease

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/clusterrun/clusterrun/tests/scripts"
)

// TestScripts runs testdata/scripts, which list a task's events on host a. The run's other hosts
// are b and c. `go test -run Scripts -rewrite` rewrites the answers.
//
// The directive run consists of the lines
//
//	bounds SHORT LONG      starts the task: the server answers an offer
//	after DURATION         time passes
//	beat                   the server answers a heartbeat, directly or through another host
//	ask HOST=ANSWER…       the host asks the other hosts; "silent" asks the memory
//	                       of that host, and "-" means no answer
//	restart HOST           the host worker of another host is killed
//	silent                 no heartbeat for 15 s: the task is offered again
//	taken                  the host accepts the offer
//	untaken [PROMISE…]     the host did not accept the offer, and the hosts promise
func TestScripts(t *testing.T) {
	scripts.Run(t, func() map[string]scripts.Directive {
		s := &script{}
		return map[string]scripts.Directive{
			"run": func(t *testing.T, d *datadriven.TestData) string { return scripts.Events(t, d, s.step) },
		}
	})
}

const scriptTask = "worker-0"

type script struct {
	now    time.Duration
	offer  int64
	held   int64 // the offer that the host holds
	holder *Holder
	others map[string]*Witness
	loss   *Loss
	bounds Bounds
}

func (s *script) step(line string) (string, error) {
	words := strings.Fields(line)
	at := time.Unix(0, 0).Add(s.now)
	switch words[0] {
	case "bounds":
		short, err := time.ParseDuration(words[1])
		if err != nil {
			return "", err
		}
		long, err := time.ParseDuration(words[2])
		if err != nil {
			return "", err
		}
		s.now, s.bounds, at = 0, Bounds{short, long}, time.Unix(0, 0)
		s.holder, s.loss, s.offer, s.held = NewHolder(s.bounds, int64(s.now)), NewLoss(s.bounds, at), 1, 1
		s.others = map[string]*Witness{"b": NewWitness(0, nil), "c": NewWitness(0, nil)}
	case "after":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return "", err
		}
		s.now += d
		return "", nil
	case "beat":
		s.holder.Answered(int64(s.now))
	case "ask":
		var answers []Answer
		for _, w := range words[1:] {
			host, answer, _ := strings.Cut(w, "=")
			a := Answer(strings.TrimPrefix(answer, "-"))
			if a == Silent && !s.others[host].Silent(scriptTask, s.held, int64(s.now)) {
				a = Denied
			}
			answers = append(answers, a)
		}
		switch a := Combine(answers, len(s.others)); a {
		case Silent:
			s.holder.Agreed(int64(s.now))
		case Renewed:
			s.holder.Answered(int64(s.now))
		default:
			return fmt.Sprintf("  %s: not extended\n", strings.Trim(fmt.Sprint(answers), "[]")), nil
		}
	case "restart":
		s.others[words[1]] = NewWitness(int64(s.now), s.others[words[1]].denied)
		return "", nil
	case "silent":
		s.loss.Heard(at.Add(-15 * time.Second))
		s.offer++
		return s.next(at), nil
	case "taken":
		s.held = s.offer
		s.holder.Answered(int64(s.now))
		s.loss.Heard(at)
	case "untaken":
		for _, host := range words[1:] {
			s.loss.Promised(at, s.others[host].Deny(scriptTask, s.offer, int64(s.now)))
		}
		s.offer++
		return s.next(at), nil
	default:
		return "", fmt.Errorf("no such event")
	}
	return fmt.Sprintf("  a lives until %s\n", time.Duration(s.holder.Until())), nil
}

func (s *script) next(at time.Time) string {
	if s.loss.Lost(at) {
		return "  lost\n"
	}
	return fmt.Sprintf("  offered for %s\n", s.loss.Wait(at))
}
