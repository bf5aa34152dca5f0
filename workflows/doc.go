// Package workflows has the ClusterRun workflow: one execution is one run. Beside it
// there is Barrier (barrier.go): one execution is one round of a barrier, by the
// rules of package rendezvous.
//
// It decides nothing. What happens to a run goes as an event into the pure
// machine of package lifecycle, and this package carries out the actions that
// come back: it starts activities, cancels them, sets timers, answers updates.
//
//	            ┌────────── update, cancellation, timer, activity ended
//	            ▼
//	 decode ─► Reserve ─► Prepare ─► events ─► machine ─► actions ─► Release ─► result
//	   │          │                     ▲                    │
//	   ▼          ▼                     └────────────────────┘
//	InvalidRunSpec  PlacementError       RunTask, Control
//
// clusterrun.go has the life of a run from one end to the other, place.go its
// hosts, launch.go the RunTask activities, requests.go the updates and the
// query, handover.go what goes on in another execution, release.go the end, policies.go the options of all activities.
//
// Changes here must keep the histories in testdata/replay replaying.
package workflows
