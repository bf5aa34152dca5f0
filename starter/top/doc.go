// Package top is what `clusterrun top` shows and how it answers keys. It is pure: [Model.Update]
// takes a key, a size or what was found out, and returns the next model with what is to be
// done; [Model.View] returns the screen as text. Who fetches, asks and draws is the caller.
//
//	runs ──enter──► tasks of a run ──enter──► output of a task
//	                      └────l────► output of all its tasks
//	1 runs · 2 queue · 3 hosts · esc back
//
// A view has as many rows as there are, and only those on the screen are made: 10,000 cost
// what 10 do.
package top
