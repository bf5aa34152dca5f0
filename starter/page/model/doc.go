// Package model builds pages' models from known facts about runs. It does not make requests;
// callers pass in what they got from servers and hosts.
package model
