// Package submit implements submit, which starts runs on a queue's hosts, and validate, which
// checks specs without starting anything.
package submit
