// Package queues has a queue of closures without a Temporal server and without hosts,
// for tests of its clients: its rules are the real ones, package closures, and its
// history has the form of the real one. It can be told to lose answers, to be away,
// to go on in another execution, and to end. Package contract holds it to the real one.
package queues
