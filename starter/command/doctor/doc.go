// Package doctor implements the command `clusterrun doctor`: it collects the facts that package
// [github.com/clusterrun/clusterrun/starter/doctor] judges.
package doctor
