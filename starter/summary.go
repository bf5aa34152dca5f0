package starter

import (
	"cmp"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Summary returns what a list has of the run. What the status does not say is of its spec, nil
// where that is not known.
func (s *Status) Summary(of *spec.RunSpec) Summary {
	list := Summary{
		RunID: s.RunID, ExecutionID: s.ExecutionID, Name: s.Name, Owner: s.Owner, Command: s.Command, Dir: s.Dir,
		Queue: s.Queue, Open: s.Open, Verdict: s.Verdict, Ending: s.Ending, Started: s.Started, Ended: s.Ended,
	}
	for _, t := range s.Tasks {
		list.Restarts += t.Restarts
		if t.Host != "" && !slices.Contains(list.Hosts, t.Host) {
			list.Hosts = append(list.Hosts, t.Host)
		}
	}
	if of != nil {
		list.Name, list.Command, list.Dir = cmp.Or(s.Name, of.Name), cmp.Or(s.Command, commandLine(of)), cmp.Or(s.Dir, of.Dir)
		list.Tasks = cluster(of)
		list.Priority = spec.DefaultPriority
		if of.Priority != nil {
			list.Priority = *of.Priority
		}
	}
	switch {
	case s.Result != nil:
		list.ExitCode, list.Cause = s.Result.ExitCode, s.Result.Cause()
	case s.Ending == terminated:
		list.ExitCode = (&TerminatedError{}).Result().ExitCode
	}
	return list
}

// Lists reports whether a run that no server is asked about is one of those that are looked for.
func (o ListOptions) Lists(s Summary) bool {
	failed := !s.Open && s.Verdict != spec.VerdictSucceeded && s.Verdict != spec.VerdictCancelled
	return o.match(s) && (!o.Open || s.Open && !s.Imported) && (!o.Failed || failed) &&
		(o.Host == "" || slices.Contains(s.Hosts, o.Host)) &&
		(o.Cause == "" || string(s.Cause) == o.Cause)
}
