// Package queues provides a queue of closures without a Temporal server and without hosts, for
// tests of its clients. Its rules are the real ones, of package closures, and its history has
// the form of the real one. A test can make it lose answers, be unreachable, continue in
// another execution, and end. Package contract checks that it behaves as the real queue does.
package queues
