// Package doctor is `clusterrun doctor`: it collects the facts that package
// [github.com/clusterrun/clusterrun/starter/doctor] judges, and with --bundle writes them to a
// file, without secrets, for those who help.
package doctor
