// Package top is the model of `clusterrun top`. It is pure: [Model.Update] takes a key, a size
// or fetched data, and returns the next model and an action; [Model.View] returns the screen as
// text. The caller fetches, acts and draws.
//
//	runs ──enter──► tasks of a run ──enter──► output of a task
//	                      └────l────► output of all its tasks
//	1 runs · 2 queue · 3 hosts · esc back
//
// Only the rows on the screen are rendered: 10,000 rows cost as much as 10.
package top
