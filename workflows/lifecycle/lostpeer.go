package lifecycle

import (
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// lostPeer is a failure due to a lost peer, whose consequences are postponed. The process that
// caused the loss may exit after its peers, because it closes its connections before it has cleaned
// up. If it were stopped because its peers failed, its error would never be known.
type lostPeer struct {
	// task is the task that has lost its peer, or nil if nothing is postponed.
	task *task
	// known reports whether the stacks are known. If they are, suspects lists the live tasks that
	// were not waiting for other tasks, in rank order.
	known    bool
	suspects []*task
	// livedOn lists the suspects that were eventually stopped.
	livedOn []string
}

// awaits reports whether the end of t, which has lost its peer, would stop tasks that may have
// caused the loss.
func (m *Machine) awaits(t *task) bool {
	if m.decided != undecided || !m.failed(t) || !t.Exit.LostPeer() || !m.anyLive() || m.errorGrace() <= 0 {
		return false
	}
	if m.isChief(t) && !m.mayRegroup(t.Exit.Cause) {
		return false // the remaining tasks have chief_grace
	}
	return m.mayRegroup(t.Exit.Cause) || m.spec.OnFailure != spec.OnFailureContinue
}

// errorGrace returns how long a task may take to exit on its own after an error.
func (m *Machine) errorGrace() (grace time.Duration) {
	for _, t := range m.tasks {
		if t.Live {
			grace = max(grace, m.spec.ErrorGraceOf(t.Task))
		}
	}
	return grace
}

// await captures the stacks and waits for the tasks that may have caused t's loss of a peer.
func (m *Machine) await(t *task) {
	m.lost = lostPeer{task: t}
	if !m.mayRegroup(t.Exit.Cause) {
		m.decide(byFailure)
	}
	m.do(Capture{Tasks: m.Live(), For: spec.CauseOrigin})
	m.startTimer(TimerErrorGrace, m.errorGrace())
}

// endedMeanwhile stops waiting if t's end explains the lost peer, or if no suspect is left.
func (m *Machine) endedMeanwhile(t *task) {
	if m.failed(t) && !t.Exit.LostPeer() || !m.anySuspect() {
		m.stopAwaiting()
	}
}

// suspect evaluates the stacks. Tasks that are waiting for other tasks cannot have closed the
// connection.
func (m *Machine) suspect(e Captured) {
	waiting := e.Stacks.Waiting()
	m.lost.known, m.lost.suspects = true, nil
	for _, t := range m.tasks {
		if t.Live && !waiting.Has(t.Rank) {
			m.lost.suspects = append(m.lost.suspects, t)
		}
	}
	if !m.anySuspect() {
		m.stopAwaiting()
	}
}

func (m *Machine) anySuspect() bool {
	among := m.tasks
	if m.lost.known {
		among = m.lost.suspects
	}
	return slices.ContainsFunc(among, func(t *task) bool { return t.Live })
}

// stopAwaiting carries out the postponed consequences.
func (m *Machine) stopAwaiting() {
	t := m.lost.task
	if t == nil || m.phase != running {
		return
	}
	for _, s := range m.lost.suspects {
		if s.Live {
			m.lost.livedOn = append(m.lost.livedOn, s.Name())
		}
	}
	m.stopTimer(TimerErrorGrace)
	m.lost.task, m.lost.suspects = nil, nil
	if m.decided == byFailure {
		m.stopAll(spec.CauseCollateral)
		return
	}
	m.judgeEnd(t)
}
