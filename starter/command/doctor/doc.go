// Package doctor has the command `clusterrun doctor`: it collects the facts that package
// [github.com/clusterrun/clusterrun/starter/doctor] judges, and with --bundle writes them to a
// file, without secrets, for support.
package doctor
